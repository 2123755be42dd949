"""Where CUDA's headers are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygpukit.jit import locate


def test_header_folders_that_lack_the_core_libraries_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, toolkit = tmp_path / "site" / "nvidia" / "cu13" / "include", tmp_path / "cuda"
    for folder in (wheel, toolkit / "include"):
        folder.mkdir(parents=True)
        (folder / "cuda_fp16.h").touch()
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    monkeypatch.setattr(locate, "_SYSTEM", ())
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("CUDA_PATH", str(toolkit))
    assert locate.cuda_headers() == [wheel]
    libraries = toolkit / "include" / "cccl" / "nv"
    libraries.mkdir(parents=True)
    (libraries / "target").touch()
    assert locate.cuda_headers() == [toolkit / "include", toolkit / "include" / "cccl"]
    (wheel / "nv").mkdir()
    (wheel / "nv" / "target").touch()
    assert locate.cuda_headers() == [wheel]
