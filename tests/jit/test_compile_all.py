"""compile_all(): parallel processes fill the one cache, errors are collected by name, Ctrl-C leaves nothing behind."""

from __future__ import annotations

import io
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileAllError, CompileError, GPUError
from pygpukit.jit import CompileProgress, Unit, compile_all, compile_source, jit
from pygpukit.jit.launch import parallel
from pygpukit.jit.toolchain import nvrtc_candidates

SOURCE = "__global__ void k(int* x) { x[0] = %d; }"
BROKEN = "__global__ void k(int* x) {\n  x[0] = missing; }"


def test_units_come_back_in_order_and_run() -> None:
    steps: list[CompileProgress] = []
    units = compile_all([SOURCE % number for number in range(1001, 1006)], processes=2, progress=steps.append)
    for number, unit in enumerate(units, 1001):
        out = gp.zeros(1, dtype="int32")
        unit.kernel("k")[1, 1](out)
        assert int(out.to_numpy()[0]) == number
    assert [(step.done, step.total) for step in steps] == [(done, 5) for done in range(1, 6)]
    assert {step.name for step in steps} == {f"kernel {number}" for number in range(1, 6)}
    assert {step.origin for step in steps} == {"compiled"} and all(step.seconds > 0 for step in steps)


def test_a_source_tree_in_the_present_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pygpukit").mkdir()
    (tmp_path / "pygpukit" / "__init__.py").write_text("raise ImportError('no compiled core')")
    monkeypatch.chdir(tmp_path)
    origins: list[str] = []
    compile_all([SOURCE % 1009], processes=1, progress=lambda step: origins.append(step.origin))
    assert origins == ["compiled"]
    with gp.worker.Worker() as worker:
        assert worker.alive


def test_what_they_compile_is_in_the_cache_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_all({"one": SOURCE % 1011, "two": SOURCE % 1012})
    assert compile_source(SOURCE % 1011, name="one", name_expressions=["k"]).origin == "memory"
    assert jit(SOURCE % 1012, name="two").compiled.key == first[1].image.key
    monkeypatch.setattr(parallel, "_compile", None)  # no process is started for what is there
    steps: list[CompileProgress] = []
    again = compile_all({"one": SOURCE % 1011, "two": SOURCE % 1012}, progress=steps.append)
    assert [(step.name, step.origin) for step in steps] == [("one", "memory"), ("two", "memory")]
    assert [unit.image.key for unit in again] == [unit.image.key for unit in first]


def test_errors_are_collected_and_the_others_compiled() -> None:
    steps: list[CompileProgress] = []
    sources = {"good": SOURCE % 1021, "bad": BROKEN, "better": SOURCE % 1022, "worse": BROKEN.replace("missing", "x +")}
    with pytest.raises(CompileAllError, match="2 of 4 units failed: ") as caught:
        compile_all(sources, processes=2, progress=steps.append)
    error = caught.value
    assert set(error.errors) == {"bad", "worse"}
    bad = error.errors["bad"]
    assert isinstance(bad, CompileError) and bad.diagnostics[0].line == 2 and "missing" in bad.diagnostics[0].message
    assert [unit.name for unit in error.units] == list(sources)
    assert error.units[2].image.image
    assert {step.name for step in steps if step.error is not None} == {"bad", "worse"}


@pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)
def test_units_of_any_kind_and_architecture(tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 1031\n")
    template = "template <class T> __global__ void t(T* x) { x[0] = VALUE; }"
    units = [
        Unit(template, name="template", defines={"VALUE": 5}, name_expressions=["t<float>"], arch="sm_80"),
        Unit(
            '#include "value.h"\n' + template,
            name="file",
            include=[tmp_path],
            name_expressions=["t<int>"],
            arch="sm_90",
        ),
        Unit(SOURCE % 1032, name="plain", arch="sm_90a", options=["--fmad=false"]),
    ]
    compile_all(units)
    assert [unit.image.arch for unit in units] == ["sm_80", "sm_90", "sm_90a"]
    assert [unit.image.origin for unit in units] == ["compiled", "compiled", "compiled"]
    assert "t<float>" in units[0].image.symbols and "1031" in units[1].image.ptx
    with pytest.raises(ValueError, match="plain is a Unit"):
        compile_all(units[2:], arch="sm_80")
    (unit,) = compile_all([SOURCE % 1033], arch="sm_80")
    assert unit.image.arch == "sm_80"


def test_a_line_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    compile_all({"one": SOURCE % 1041, "two": SOURCE % 1042}, progress=True)
    lines = capsys.readouterr().err.split("\r")
    assert [line.split(",")[0] for line in lines[1:]] == ["compiled 1 of 2", "compiled 2 of 2"]
    assert lines[-1].endswith("\n")


def test_nothing_to_do_and_wrong_calls() -> None:
    assert compile_all([]) == []
    with pytest.raises(ValueError, match="processes is 0"):
        compile_all([SOURCE], processes=0)
    with pytest.raises(TypeError, match="list of texts"):
        compile_all(SOURCE)


def test_an_exception_of_the_callback_stops_it() -> None:
    def broken(step: CompileProgress) -> None:
        raise ZeroDivisionError(step.name)

    with pytest.raises(ZeroDivisionError):
        compile_all([SOURCE % number for number in range(1051, 1054)], processes=2, progress=broken)
    assert not helpers()


def helpers() -> list[threading.Thread]:
    """Threads of compile_all() that do not end."""
    for thread in threading.enumerate():
        if thread.name == "pygpukit-compile":
            thread.join(60)
    return [thread for thread in threading.enumerate() if thread.name == "pygpukit-compile"]


class Answering:
    """A process and its output, which says nothing until it is told to end. told: whether it was closed in a read."""

    def __init__(self, *_args: Any, **_keywords: Any) -> None:
        self.stdin, self.stdout, self.returncode = io.BytesIO(), self, None
        self.ended, self.reading = threading.Event(), threading.Event()
        self.told: list[bool] = []

    def readline(self) -> bytes:
        return self.read(1)

    def read(self, _size: int) -> bytes:
        self.reading.set()
        self.ended.wait(60)
        time.sleep(0.05)
        self.reading.clear()
        return b""

    def close(self) -> None:
        self.told.append(self.reading.is_set())

    def send_signal(self, _number: int) -> None:
        self.ended.set()

    def wait(self, _timeout: float | None = None) -> int:
        return 0


def test_no_pipe_is_closed_while_a_thread_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Answering()
    monkeypatch.setattr(parallel.subprocess, "Popen", lambda *_args, **_keywords: process)
    tasks: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    tasks.put((0, b"request"))
    helper = parallel._Helper(tasks, queue.SimpleQueue())
    helper.start()
    assert process.reading.wait(60)
    helper.stop()
    helper.join(60)
    assert process.told == [False]


def test_a_process_that_dies_costs_its_unit_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dying_worker.py").write_text(
        "import os\nfrom pygpukit.jit.compile import worker\nreal = worker.compile_source\n"
        "def dying(source, **rest):\n    return os._exit(9) if 'DIE' in source else real(source, **rest)\n"
        "worker.compile_source = dying\nworker.main()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(parallel, "_WORKER", "dying_worker")
    sources = {"a": SOURCE % 1061, "dead": SOURCE % 1062 + " // DIE", "b": SOURCE % 1063, "c": SOURCE % 1064}
    with pytest.raises(CompileAllError, match="1 of 4") as caught:
        compile_all(sources, processes=1)
    assert isinstance(caught.value.errors["dead"], GPUError) and "exit code 9" in str(caught.value)
    assert [unit.image.origin for unit in caught.value.units if unit.name != "dead"] == ["compiled"] * 3


INTERRUPTED = """
import sys
import pygpukit as gp
# Templates that instantiate each other take a compiler many seconds.
slow = "template <int A, int N> struct F { static constexpr long v = F<A, N - 1>::v + F<A, N - 2>::v; };"
slow += "template <int A> struct F<A, 0> { static constexpr long v = 1; };"
slow += "template <int A> struct F<A, 1> { static constexpr long v = 1; };"
sums = " + ".join(f"F<{a}, 80>::v % 7" for a in range(4000))
sources = [f"{slow}\\n__global__ void k(long* x) {{ x[0] = {sums} + {n}; }}" for n in range(4)]
print("ready", flush=True)
try:
    gp.compile_all(sources, processes=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(0)
sys.exit(1)
"""


def children(pid: int) -> set[int]:
    """Every process that descends from `pid`."""
    found: set[int] = set()
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    waiting = {pid}
    while waiting:
        waiting = {child for child, parent in parents.items() if parent in waiting}
        found |= waiting
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_ctrl_c_ends_the_processes() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 60
    while len(started := children(process.pid)) < 3 and time.monotonic() < deadline:  # two helpers and a compiler
        time.sleep(0.05)
    assert len(started) >= 3
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (out, errors, process.returncode) == ("interrupted\n", "", 0)
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []
