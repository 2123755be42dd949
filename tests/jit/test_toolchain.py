"""Toolchains: parts of one version are one set, the best set is taken, and programs see their own set alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pygpukit.core.errors import CompileError
from pygpukit.jit import toolchain
from pygpukit.jit.compile import tile
from pygpukit.jit.toolchain import find, places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layout is that of Linux")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def toolkit(root: Path, version: str, *parts: str, library: str = "lib64") -> Path:
    """A folder laid out as a toolkit, with parts that say that version. parts: beside NVRTC and its headers."""
    major, minor = version.split(".")
    folder = root / library
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"libnvrtc.so.{major}").touch()
    (folder / f"libnvrtc-builtins.so.{version}").touch()
    include = root / "include"
    include.mkdir(exist_ok=True)
    (include / "cuda_fp16.h").touch()
    (include / "cuda.h").write_text(f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n")
    for part in parts:
        if part == "libnvvm":
            (folder / "libnvvm.so.4").touch()
        else:
            program(root / "bin" / part, f'echo "Cuda compilation tools, release {version}, V{version}.1"')
    return root


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any toolkit; its wheels would lie in site/."""
    for name in ("CUDA_PATH", "CUDA_HOME", "CUDA_ROOT", "LD_LIBRARY_PATH", "PYGPUKIT_TOOLKIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(places, "_LOCAL", str(tmp_path / "local"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr(toolchain, "_opened", None)
    find._toolchains.cache_clear()
    yield tmp_path
    find._toolchains.cache_clear()


WHOLE = ("tileiras", "ptxas", "libnvvm", "nvdisasm")


def wheel(site: Path, version: str, *parts: str) -> Path:
    return toolkit(site / "nvidia" / "cu13", version, *parts, library="lib")


def test_without_a_toolkit_there_is_no_set(alone: Path) -> None:
    assert toolchain.toolchains() == () and toolchain.taken() is None
    assert toolchain.tileiras() is None and toolchain.nvdisasm() is None
    assert toolchain.nvrtc_candidates() == ["libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"]  # the loader searches


def test_headers_come_from_the_place_that_has_the_most_of_them(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touch(*paths: Path) -> None:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    wheel(alone / "site", "13.0")  # as beside PyTorch: CUDA's headers alone
    home = toolkit(alone / "home", "13.0") / "include"
    touch(home / "nv" / "target", home / "cccl" / "nv" / "target", home / "cccl" / "cuda" / "std" / "type_traits")
    touch(toolkit(alone / "path", "13.1") / "include" / "crt" / "mma.h")  # another version's do not count
    monkeypatch.setenv("CUDA_HOME", str(home.parent))
    monkeypatch.setenv("CUDA_PATH", str(alone / "path"))
    assert {one.headers for one in toolchain.toolchains() if one.version == (13, 0)} == {(home, home / "cccl")}


def test_the_newest_set_that_makes_tile_kernels_comes_first(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(alone / "site", "13.0")
    monkeypatch.setenv("CUDA_HOME", str(toolkit(alone / "home", "13.4", *WHOLE)))
    monkeypatch.setenv("CUDA_PATH", str(toolkit(alone / "path", "13.5")))
    toolkit(alone / "local" / "cuda-13.3", "13.3", *WHOLE)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(toolkit(alone / "loader", "12.4") / "lib64"))
    assert [one.version for one in toolchain.toolchains()] == [(13, 4), (13, 3), (13, 5), (13, 0), (12, 4)]
    taken = toolchain.taken()
    assert taken is not None and taken.place == "CUDA_HOME" and taken.makes_tile_kernels
    assert taken.tileiras == alone / "home" / "bin" / "tileiras" and taken.nvdisasm == taken.tileiras.with_name(
        "nvdisasm"
    )


def test_one_toolkit_can_be_chosen(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(alone / "site", "13.5", *WHOLE)
    older = toolkit(alone / "older", "13.0")
    monkeypatch.setenv("PYGPUKIT_TOOLKIT", str(older))
    (one,) = toolchain.toolchains()
    assert one.version == (13, 0) and toolchain.nvrtc_candidates() == [str(older / "lib64" / "libnvrtc.so.13")]
    monkeypatch.setenv("PYGPUKIT_TOOLKIT", str(alone / "nothing"))
    assert toolchain.toolchains() == () and toolchain.nvrtc_candidates() == []


def test_a_toolkit_on_the_path_is_found(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = toolkit(alone / "kit", "13.5", "nvcc", *WHOLE)
    monkeypatch.setenv("PATH", f"/usr/bin:{root / 'bin'}")
    (one,) = toolchain.toolchains()
    assert one.place == "PATH" and one.root == root


def test_parts_of_two_versions_never_meet(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers, assembler and disassembler of 13.0 and 13.5 around compilers of 13.4 and 12.9."""
    wheel(alone / "site", "13.4")
    monkeypatch.setenv("CUDA_HOME", str(toolkit(alone / "home", "13.5", *WHOLE)))
    (alone / "home" / "lib64" / "libnvrtc.so.13").unlink()
    monkeypatch.setenv("CUDA_PATH", str(toolkit(alone / "path", "12.9")))
    (alone / "path" / "include" / "cuda.h").write_text("#define CUDA_VERSION 13000\n")
    newer, older = toolchain.toolchains()
    assert newer.version == (13, 4) and newer.tileiras is None and newer.nvdisasm is None
    assert "13.5" in newer.lacks["tileiras"] and "13.5" in newer.lacks["nvdisasm"]
    assert toolchain.nvdisasm() == alone / "home" / "bin" / "nvdisasm"  # a newer one reads what older ones made
    assert older.version == (12, 9) and older.headers == () and "13.0" in older.lacks["headers"]


def test_headers_of_the_same_version_may_lie_elsewhere(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = wheel(alone / "site", "13.0")
    (root / "include" / "cuda_fp16.h").unlink()
    kit = toolkit(alone / "home", "13.0")
    core = kit / "include" / "cccl" / "nv"
    core.mkdir(parents=True)
    (core / "target").touch()
    monkeypatch.setenv("CUDA_HOME", str(kit))
    assert toolchain.toolchains()[0].headers == (kit / "include", kit / "include" / "cccl")


@pytest.mark.parametrize(("missing", "said"), [("ptxas", "ptxas"), ("libnvvm", "libnvvm")])
def test_an_assembler_without_its_helpers_is_none(alone: Path, missing: str, said: str) -> None:
    wheel(alone / "site", "13.5", *(part for part in WHOLE if part != missing))
    (one,) = toolchain.toolchains()
    assert one.tileiras is None and said in one.lacks["tileiras"]


def test_an_assembler_whose_helper_is_of_another_version_is_none(alone: Path) -> None:
    root = wheel(alone / "site", "13.5", *WHOLE)
    program(root / "bin" / "ptxas", 'echo "release 13.0, V13.0.88"')
    (one,) = toolchain.toolchains()
    assert one.tileiras is None and "13.0" in one.lacks["tileiras"]


def test_a_compiler_without_its_other_half_is_left_out(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = wheel(alone / "site", "13.5", *WHOLE)
    (root / "lib" / "libnvrtc-builtins.so.13.5").unlink()
    monkeypatch.setenv("CUDA_HOME", str(toolkit(alone / "home", "12.4")))
    assert [one.works for one in toolchain.toolchains()] == [True, False]
    assert toolchain.nvrtc_candidates()[0] == str(alone / "home" / "lib64" / "libnvrtc.so.12")


def test_the_record_of_a_wheel_tells_which_of_two_halves_is_its_own(alone: Path) -> None:
    root = wheel(alone / "site", "13.0")
    (root / "lib" / "libnvrtc-builtins.so.13.5").touch()  # of an installation that was not removed whole
    (alone / "site" / "nvidia_cuda_nvrtc-13.0.88.dist-info").mkdir()
    assert [one.version for one in toolchain.toolchains()] == [(13, 0)]


def test_programs_see_their_own_set_alone(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = toolkit(alone / "home", "13.0", "nvcc", "ptxas", "libnvvm")
    tools = alone / "tools"
    program(tools / "true", "exit 0")
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        monkeypatch.setenv(name, str(other))
    monkeypatch.setenv("PATH", f"{other / 'bin'}:{tools}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{other / 'lib64'}:{tools}")
    own = wheel(alone / "site", "13.5", *WHOLE)
    found = toolchain.environment(own / "bin" / "tileiras")
    assert found["CUDA_HOME"] == found["CUDA_PATH"] == found["CUDA_ROOT"] == str(own)
    assert found["PATH"].split(":") == [str(own / "bin"), str(tools)]
    assert found["LD_LIBRARY_PATH"].split(":") == [str(own / "lib"), str(tools)]


@pytest.mark.parametrize("words", ["echo 'error: no such thing'", "echo 'error: no such thing' >&2"])
def test_the_words_of_an_assembler_reach_the_user(alone: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    fake = alone / "bin" / "tileiras"
    program(fake, f"{words}; exit 5")
    monkeypatch.setattr(tile, "require", lambda: fake)
    with pytest.raises(
        CompileError, match=r"unit: tileiras could not .*sm_90a: error: no such thing\nexit code 5"
    ) as caught:
        tile.assemble(b"", "sm_90a", "unit")
    assert "no such thing" in caught.value.diagnostics[0].message


def test_an_assembler_that_cannot_start_says_why(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = alone / "bin" / "tileiras"
    program(fake, "")
    fake.write_bytes(b"\x7fELF no program")
    fake.chmod(0o755)
    monkeypatch.setattr(tile, "require", lambda: fake)
    with pytest.raises(CompileError, match="Exec format error"):
        tile.assemble(b"", "sm_90a", "unit")
