"""CUDA Tile C++: kernels written on whole tiles of arrays; NVRTC makes Tile IR of them and tileiras an image.

A tile kernel (`__tile_global__`) says what happens to whole tiles; the compiler chooses threads, tensor cores and bulk
copies. It is launched by its grid alone. Needs NVRTC 13.3 and NVIDIA's tileiras, which the extra `tile` brings.
"""

from __future__ import annotations

from pathlib import Path

from pygpukit.core.errors import CompileError, NvrtcError, NvrtcErrorCode
from pygpukit.jit import locate
from pygpukit.jit.compile import nvrtc

SINCE = (13, 3)
STANDARD = "--std=c++20"
FLAG = "--enable-tile"
REMEDY = 'python -m pip install "pygpukit[cuda13,tile]"'
_TIME_LIMIT_S = 300.0


def missing() -> str:
    """Why tile kernels cannot be compiled here, and what to install; "" where they can."""
    try:
        version = nvrtc.open_nvrtc()[1]
    except NvrtcError as error:
        return str(error)
    if version < SINCE:
        return "tile kernels need NVRTC {}.{} or newer; this one is {}.{}. Install it with: {}".format(
            *SINCE, *version, REMEDY
        )
    if locate.tileiras() is None:
        return f"tile kernels need NVIDIA's assembler tileiras, which was not found; install it with: {REMEDY}"
    return ""


def require() -> str:
    """The path of tileiras. Raises NvrtcError that says what to install."""
    found = locate.tileiras()
    if found is None or missing():
        raise NvrtcError(missing(), NvrtcErrorCode.NotLoaded)
    return found


def identity() -> bytes:
    """What tells one assembler from another in a cache key; "" where there is none."""
    found = locate.tileiras()
    return b"" if found is None else f" tileiras {Path(found).stat().st_size}".encode()


def assemble(tile_ir: bytes, arch: str, name: str) -> tuple[bytes, str]:
    """(image, remarks) of a unit's Tile IR for `arch` ("sm_90a"). Raises CompileError with the assembler's words."""
    import subprocess  # and what else only a compile needs
    import tempfile

    program = require()
    with tempfile.TemporaryDirectory(prefix="pygpukit-tile-") as folder:
        source, target = Path(folder, "unit.tileir"), Path(folder, "unit.cubin")
        source.write_bytes(tile_ir)
        # The assembler has no names for the variants of an architecture: it uses what the plain one has of them.
        command = [program, f"--gpu-name={arch.rstrip('af')}", "--remarks=all", "-o", str(target), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise CompileError(f"{name}: tileiras had not ended after {_TIME_LIMIT_S:.0f} s") from None
        if done.returncode or not target.is_file():
            words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
            raise CompileError(f"{name}: tileiras could not assemble the kernel for {arch}: {words}")
        return target.read_bytes(), done.stdout + done.stderr
