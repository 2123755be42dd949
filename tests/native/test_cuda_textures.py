"""What the CUDA driver table asks of the driver for arrays, textures and surfaces: structures field for field."""

from __future__ import annotations

from pathlib import Path

from mock_cuda import build, start

PRELUDE = """
import struct
t = Table()
t.ok("device_use", 0)
def array(*numbers): return ctypes.c_char_p(struct.pack("QQQIIII", *numbers))
def copy(*numbers): return ctypes.c_char_p(struct.pack("QQQQQII", *numbers))
def texture(resource, flags, memory, format, channels, width, height, pitch):
    return ctypes.c_char_p(struct.pack(
        "IIQIIQQQIIIIIfff4f", resource, flags, memory, format, channels, width, height, pitch, 0, 2, 3, 1, 1, .5, 1, 2,
        0, 0, 0, 7))
"""


def asked(code: str, tmp_path: Path) -> list[str]:
    log = tmp_path / "log"
    start(PRELUDE + code, {"MOCK_CUDA_LOG": str(log)}, build() / "mock")
    words = ("cuArray", "cuMipmapped", "cuMemcpy3D", "cuTex", "cuSurf")
    return [line.strip() for line in log.read_text().splitlines() if line.startswith(words)]


def test_arrays_and_copies(tmp_path: Path) -> None:
    log = asked(
        """
plain = t.get("array_create", array(7, 5, 3, 32, 2, 2, 0))
t.ok("array_copy", copy(plain, 0x5000, 56, 5, 3, 1, 0), 9)
t.ok("array_copy", copy(plain, 0x5000, 56, 5, 3, 0, 0), 9)
t.ok("array_destroy", plain, 0)
levels = t.get("array_create", array(8, 4, 0, 1, 4, 0, 3))
t.get("array_level", levels, 2)
t.ok("array_destroy", levels, 3)
""",
        tmp_path,
    )
    array, memory = "type 3 array a0001 device 0 pitch 0 height 0", "type 2 array 0 device 5000 pitch 56 height 5"
    assert log == [
        "cuArray3DCreate 7 x 5 x 3 format 32 channels 2 flags 2",
        f"cuMemcpy3DAsync {memory} to {array} extent 56 5 3 stream 9",
        f"cuMemcpy3DAsync {array} to {memory} extent 56 5 3 stream 9",
        "cuArrayDestroy a0001",
        "cuMipmappedArrayCreate 8 x 4 levels 3",
        "cuMipmappedArrayGetLevel a0002 level 2",
        "cuMipmappedArrayDestroy a0002",
    ]


def test_textures_and_surfaces(tmp_path: Path) -> None:
    log = asked(
        """
for given in [(0, 1, 0xabc, 0, 0, 0, 0, 0), (1, 2, 0xabd, 0, 0, 0, 0, 0), (2, 0, 0x400, 16, 4, 100, 0, 0),
              (3, 3, 0x800, 8, 1, 20, 30, 64)]:
    t.ok("texture_destroy", t.get("texture_create", texture(*given)))
t.ok("surface_destroy", t.get("surface_create", 0xabc))
""",
        tmp_path,
    )
    how = "modes 0 2 3 filter 1 flags {} mipmap 1 levels 0.5 1 2 border 7 view 0"
    assert [line for line in log if "Destroy" not in line] == [
        "cuTexObjectCreate array abc " + how.format(1),
        "cuTexObjectCreate array abd " + how.format(2),
        "cuTexObjectCreate linear 400 format 16 channels 4 bytes 800 " + how.format(0),
        "cuTexObjectCreate pitched 800 20 x 30 pitch 64 " + how.format(3),
        "cuSurfObjectCreate type 0 array abc",
    ]
    assert [line for line in log if "Destroy" in line] == [f"cuTexObjectDestroy a000{i}" for i in range(1, 5)] + [
        "cuSurfObjectDestroy a0005"
    ]
