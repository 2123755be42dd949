"""Full disks: what the cache and the compiler say of them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pygpukit.jit import compile_source
from pygpukit.jit.cache import store as cache
from pygpukit.jit.compile import room, simulator
from pygpukit.jit.compile.bounded import Outcome

SOURCE = "__global__ void room(int* x) { x[0] = %d; }"


def test_a_cache_folder_that_takes_no_more_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files cannot be written: here because files stand where its folders should."""
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_cache", None)
    monkeypatch.setattr(cache, "_warned", False)
    store = cache.kernel_cache()
    cache.keep(bytes(32), b"fits")
    assert store.get(bytes(32), stored=True) is not None
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal = pytest.importorskip("signal")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, before[1]))  # as a full disk: writes fail half way
    try:
        with pytest.warns(
            RuntimeWarning, match=r"memory only.*kernels takes no more \(.*set PYGPUKIT_CACHE_DIR"
        ) as told:
            for number in range(3):
                cache.keep(bytes([number]) * 32, os.urandom(1 << 12))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(told) == 1
    assert store.get(bytes([2]) * 32) is not None, "in memory"
    assert not list(tmp_path.rglob(".tmp-*"))


def test_a_full_folder_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, text: str, encoding: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"no room is left in .* what the compiler writes; .* set TMPDIR") as caught:
        simulator.compile(SOURCE % 1)
    assert caught.value.errno == errno.ENOSPC


def test_a_compiler_without_room_is_not_a_fault_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], *more: Any) -> Outcome:
        return Outcome(1, "", "fatal error: error writing to /tmp/x.s", "")

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    simulator.compiler_identity()
    monkeypatch.setattr(simulator.sim_headers, "prelude", lambda *flags: Path("prelude.h"))
    monkeypatch.setattr(simulator, "_run", run)
    monkeypatch.setattr(room.tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="no room is left in"):
        simulator.compile(SOURCE % 2)


def test_other_faults_are_left_as_they_are() -> None:
    with pytest.raises(FileNotFoundError), room.name_full_disk():
        raise FileNotFoundError(errno.ENOENT, "x")
    room.check_room()
    assert tempfile.gettempdir()
    compile_source(SOURCE % 3, arch="sim")
