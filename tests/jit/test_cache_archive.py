"""The cache as its user sees it: figures, limits, and an archive that moves it to another machine."""

from __future__ import annotations

import os
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit import _core, cli
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jit import compile_source
from pygpukit.jit.cache import archive
from pygpukit.jit.cache import store as cache


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process with that cache folder."""
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(folder))
    monkeypatch.setattr(cache, "_cache", None)


def build(number: int) -> str:
    return compile_source(f"__global__ void k(int* x) {{ x[0] = {number}; }}", arch="sim").origin


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(tmp_path / "one", monkeypatch)


def test_an_exported_cache_serves_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [build(1), build(2)] == ["compiled", "compiled"]
    entries = gp.cache.export(tmp_path / "kernels.zip")
    assert entries == gp.cache.info()["disk_entries"] and entries >= 2
    fresh(tmp_path / "two", monkeypatch)
    assert gp.cache.import_(tmp_path / "kernels.zip") == entries
    fresh(tmp_path / "two", monkeypatch)
    assert [build(1), build(2), build(3)] == ["disk", "disk", "compiled"]
    assert gp.cache.clear() > entries
    assert build(1) == "compiled"


def test_equal_entries_make_equal_archives(tmp_path: Path) -> None:
    build(1)
    for name in ("a", "b"):
        gp.cache.export(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"one", "a", "b"}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_every_byte_of_an_archive_flipped_in_turn_gives_no_wrong_entry(tmp_path: Path, compression: int) -> None:
    entries = _core.KernelCache(None)
    sound = {_core.KernelCache.digest([bytes([i])]): bytes([i]) * 60 for i in range(3)}
    for key, payload in sound.items():
        entries.put(key, payload)
    sealed = [entries.sealed(key) for key in sound]
    path = tmp_path / "archive"
    assert archive.write(path, [("group", [one for one in sealed if one is not None])], compression) == 3
    content = path.read_bytes()
    refused = 0
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :])
        try:
            for key, payload in archive.read(path):
                assert sound[key] == payload
        except ValueError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused > len(content) / 2  # dates, flags and the like of the container mean nothing


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    for name, content in {"empty": b"", "text": b"hello", "zip": None}.items():
        path = tmp_path / name
        if content is None:
            with zipfile.ZipFile(path, "w") as other:
                other.writestr("entries", b"x" * 100)
        else:
            path.write_bytes(content)
        with pytest.raises(ValueError, match=str(path)):
            gp.cache.import_(path)
    with pytest.raises(OSError, match="absent"):
        gp.cache.import_(tmp_path / "absent")
    with pytest.raises(OSError, match="nowhere"):
        gp.cache.export(tmp_path / "nowhere" / "archive")


def test_the_folder_keeps_its_limit_and_its_time_to_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CACHE_BYTES", "60000")
    fresh(tmp_path / "small", monkeypatch)
    for number in range(8):
        build(number)
    stats = cache.kernel_cache().stats()
    assert stats["evicted"] > 0 and stats["disk_bytes"] <= 60000
    monkeypatch.setenv("PYGPUKIT_CACHE_TTL_S", "1000")
    fresh(tmp_path / "small", monkeypatch)
    assert build(7) == "disk"
    for path in (tmp_path / "small").rglob("*"):
        os.utime(path, (time.time() - 2000,) * 2)
    fresh(tmp_path / "small", monkeypatch)
    assert build(7) == "compiled"
    assert cache.kernel_cache().stats()["expired"] > 0


@pytest.mark.parametrize("variable", ["PYGPUKIT_CACHE_BYTES", "PYGPUKIT_CACHE_TTL_S"])
def test_a_setting_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "much")
    with pytest.raises(InvalidSpecError, match=f"{variable}=much: give a number"):
        build(1)


def test_a_new_process_knows_what_is_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "__global__ void k(int* x) { x[0] = X; }"
    compile_source(source, defines={"X": 1}, arch="sim")
    fresh(tmp_path / "one", monkeypatch)
    other = compile_source(source, defines={"X": 2}, arch="sim")
    assert "the same source was compiled before with other options (" in other.reason
    assert other.reason in gp.cache.explain(other)
    for path in (tmp_path / "one" / "kernels").rglob("*"):
        if path.is_file() and path.stat().st_size > 2000:
            path.unlink()
    fresh(tmp_path / "one", monkeypatch)
    assert compile_source(source, defines={"X": 2}, arch="sim").reason == "its entry was evicted, expired or damaged"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    build(1)
    assert cli.main(["cache", "export", str(tmp_path / "file")]) == 0
    assert cli.main(["cache", "info"]) == 0
    out = capsys.readouterr().out
    assert f"entries to {tmp_path / 'file'}" in out and str(tmp_path / "one" / "kernels") in out
    assert cli.main(["cache", "clear"]) == 0
    assert cli.main(["cache", "import", str(tmp_path / "file")]) == 0
    assert build(1) == "memory"
    (tmp_path / "file").write_text("no archive")
    assert cli.main(["cache", "import", str(tmp_path / "file")]) == 1
    assert "cannot be read as an archive" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["cache"])


def test_a_length_in_an_archive_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.comment = b"pygpukit cache archive 1"
        with made.open("entries", "w", force_zip64=True) as member:
            member.write(b"\xff\xff\xff\xff")
            for _ in range(100):
                member.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="states an entry of 4294967295 bytes; the largest have"):
            gp.cache.import_(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_an_entry_that_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_BYTES", 100)
    with pytest.raises(ValueError, match="an entry has 101 bytes; an archive takes 100"):
        archive.write(tmp_path / "a", [("entries", [bytes(101)])])
    assert not list(tmp_path.glob("*a*"))
