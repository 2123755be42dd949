"""compile_all(): many units compiled in parallel processes, through the one cache, with progress."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pygpukit.core import child
from pygpukit.core.errors import CompileAllError, GPUError
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile.compiler import adopt_image, find_image, target_arch
from pygpukit.jit.launch.unit import Unit

_WORKER = "pygpukit.jit.compile.worker"
_END_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class CompileProgress:
    """One unit is done. done counts it; seconds it took; origin as of an Image, "" with an error."""

    done: int
    total: int
    name: str
    seconds: float
    origin: str
    error: Exception | None = None


Report = Callable[[CompileProgress], object]


def compile_all(
    sources: Iterable[str | Unit] | Mapping[str, str],
    *,
    arch: str | None = None,
    processes: int | None = None,
    progress: Report | bool | None = None,
) -> list[Unit]:
    """Compile many sources at once and return their units, in order; unit.kernel(name) gives a kernel.

    sources: CUDA C++ texts, Units, or a mapping from unit names to texts. arch: for texts, as of jit(). processes: at
    most so many (default: one for each processor). progress: True for a line on stderr, or a function that is called
    with a CompileProgress in this thread after each unit.

    What is in the cache is taken from there; the rest is compiled by processes that fill it. All units are tried:
    CompileAllError names those that failed, with their exceptions. Ctrl-C ends the processes. ValueError for a bad
    number of processes, or an architecture beside Units.
    """
    if processes is not None and processes < 1:
        raise ValueError(f"processes is {processes}; it must be at least 1")
    units = _units(sources, arch)
    names = _names(units)
    errors: dict[str, Exception] = {}
    report = _line if progress is True else progress or None
    done = 0

    def finish(at: int, result: Image | Exception, seconds: float) -> None:
        nonlocal done
        done += 1
        origin, failure = "", None
        if isinstance(result, Image):
            units[at].image, origin = result, result.origin
        else:
            errors[names[at]] = failure = result
        if report is not None:
            report(CompileProgress(done, len(units), names[at], seconds, origin, failure))

    waiting = []
    for at, unit in enumerate(units):
        start = time.perf_counter()
        image = find_image(unit.source, unit.arguments())
        if image is None:
            waiting.append(at)
        else:
            finish(at, image, time.perf_counter() - start)
    if waiting:
        _compile(units, waiting, min(processes or _processors(), len(waiting)), finish)
    if errors:
        failures = "; ".join(f"{name}: {error}" for name, error in list(errors.items())[:3])
        more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
        raise CompileAllError(f"{len(errors)} of {len(units)} units failed: {failures}{more}", errors, units)
    return units


def _units(sources: Iterable[str | Unit] | Mapping[str, str], arch: str | None) -> list[Unit]:
    if isinstance(sources, str):
        raise TypeError("sources is a list of texts or units; write [source]")
    if isinstance(sources, Mapping):
        return [Unit(text, name=name, arch=arch) for name, text in sources.items()]
    units = []
    for one in sources:
        if isinstance(one, Unit) and arch is not None:
            raise ValueError(f"arch is {arch!r}, and {one.name} is a Unit, which has its own")
        units.append(one if isinstance(one, Unit) else Unit(one, arch=arch))
    return units


def _names(units: Sequence[Unit]) -> list[str]:
    """The units' names; those that several have with their positions, from 1."""
    count = Counter(unit.name for unit in units)
    return [unit.name if count[unit.name] == 1 else f"{unit.name} {at + 1}" for at, unit in enumerate(units)]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compile(
    units: Sequence[Unit],
    waiting: Sequence[int],
    processes: int,
    finish: Callable[[int, Image | Exception, float], None],
) -> None:
    """One thread feeds each process; results are taken over in this thread."""
    tasks: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[int, Image | Exception, int]] = queue.SimpleQueue()
    for at in waiting:
        unit, arguments = units[at], units[at].arguments()
        # The architecture by name, so that the processes open no backend.
        tasks.put((at, pickle.dumps((unit.source, {**arguments, "arch": target_arch(unit.source, arguments)}))))
    helpers = [_Helper(tasks, results) for _ in range(processes)]
    try:
        for helper in helpers:
            helper.start()
        for _ in waiting:
            at, result, duration_ns = results.get()
            if isinstance(result, Image):
                result = adopt_image(result, units[at].name, duration_ns)
            finish(at, result, duration_ns * 1e-9)
    finally:
        for helper in helpers:
            helper.stop()


class _Helper(threading.Thread):
    """A compiling process and the thread that talks to it."""

    def __init__(
        self,
        tasks: queue.SimpleQueue[tuple[int, bytes]],
        results: queue.SimpleQueue[tuple[int, Image | Exception, int]],
    ) -> None:
        super().__init__(name="pygpukit-compile", daemon=True)
        self._tasks, self._results = tasks, results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = self._ready = False

    def run(self) -> None:
        with contextlib.suppress(queue.Empty):
            while not self._stopped:
                at, request = self._tasks.get_nowait()
                self._results.put((at, *self._answer(request)))

    def _answer(self, request: bytes) -> tuple[Image | Exception, int]:
        """The process's answer; an error when it dies, and then the next request gets a new process."""
        try:
            process = self._living()
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(request)
            process.stdin.flush()
            answer: tuple[Image | Exception, int] = pickle.load(process.stdout)
            return answer
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            ended = self._end()
            _close(ended)
            code = ended and ended.returncode
            return GPUError(f"the compiling process ended with exit code {code}: {type(error).__name__}"), 0

    def _living(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise OSError("compiling was stopped")
            if self._process is None:
                self._process = subprocess.Popen(
                    child.command(_WORKER),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                    start_new_session=True,  # Ctrl-C in a terminal is for this process, which ends that one
                )
            process = self._process
        if not self._ready:
            assert process.stdout is not None
            self._ready = pickle.load(process.stdout)
        return process

    def stop(self) -> None:
        """End the process, and what it started, now."""
        self._stopped = True
        ended = self._end()
        if self.ident is not None:
            self.join()  # a pipe that another thread reads must not be closed
        _close(ended)

    def _end(self) -> subprocess.Popen[bytes] | None:
        """End the process and give it, its pipes still open; None where there is none."""
        with self._lock:
            process, self._process = self._process, None
            ready, self._ready = self._ready, False
        if process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT if ready else signal.SIGKILL)  # interrupted, it stops its own compiler
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return process


def _close(process: subprocess.Popen[bytes] | None) -> None:
    for pipe in (process.stdin, process.stdout) if process is not None else ():
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _line(step: CompileProgress) -> None:
    """One line that is written over again, ended by the last unit."""
    what = f"{step.name}: {step.origin or 'failed'} ({step.seconds:.2f} s)"
    end = "\n" if step.done == step.total else ""
    print(f"\rcompiled {step.done} of {step.total}, {what:<60}", end=end, file=sys.stderr, flush=True)
