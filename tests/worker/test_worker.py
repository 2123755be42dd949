"""The worker process: shared arrays, typed errors, death with the parent, restart."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scheduler_help import wait_until

import pygpukit as gp
from pygpukit.worker import Worker, WorkerDiedError, WorkerError, WorkerTaskError, WorkerTimeoutError, protocol

F = "worker_functions"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker("test") as shared:
        yield shared


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie that nobody has collected is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may be collected between the opening and the reading
        return False


def wait_gone(pid: int, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_it_is_a_child_on_the_same_backend(worker: Worker) -> None:
    ids = worker.call(f"{F}:ids")
    assert ids["pid"] == worker.pid != os.getpid()
    assert ids["parent"] == os.getpid()
    assert worker.call(f"{F}:backend") == str(gp.backend())


def test_values_travel_unchanged(worker: Worker) -> None:
    value = {"a": [1, 2.5, "text \u00e9", None, True], "b": {}, "big": "x" * 300_000}
    assert worker.call(f"{F}:echo", value) == value
    assert worker.call(f"{F}:echo", value=float("inf")) == float("inf")


def test_the_worker_reads_what_the_parent_wrote(worker: Worker) -> None:
    a = gp.from_numpy(np.arange(1000, dtype=np.float32))
    b = gp.ones(50)
    assert worker.call(f"{F}:total", a, b, scale=2.0) == 2 * (999 * 500 + 50)


def test_the_parent_sees_what_the_worker_wrote_and_back(worker: Worker) -> None:
    array = gp.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4))
    address = array.device_ptr
    worker.call(f"{F}:add_one", array)
    assert array.device_ptr == address
    np.testing.assert_array_equal(array.to_numpy(), np.arange(1, 13, dtype=np.float32).reshape(3, 4))
    worker.call(f"{F}:scale", array, 10.0)
    total = gp.add(array, array)
    np.testing.assert_array_equal(total.to_numpy(), 20 * np.arange(1, 13, dtype=np.float32).reshape(3, 4))
    assert worker.call(f"{F}:total", total) == 20 * 78


def test_arrays_of_one_and_of_several_segments(worker: Worker) -> None:
    large = gp.from_numpy(np.ones(3 << 20, dtype=np.float32))
    small, out = gp.from_numpy(np.full(3 << 20, 2, np.float32)), gp.zeros(3 << 20)
    worker.call(f"{F}:add_into", large, b=small, out=out)
    assert float(out.to_numpy().min()) == 3.0 == float(out.to_numpy().max())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_shape_and_dtype_arrive(worker: Worker, dtype: str) -> None:
    assert worker.call(f"{F}:describe", gp.zeros((2, 3), dtype=dtype)) == [[2, 3], dtype]


def test_an_array_kept_by_the_worker_stays_readable_there(worker: Worker) -> None:
    worker.call(f"{F}:keep", gp.from_numpy(np.full(100, 3, np.float32)))
    gp.synchronize()
    assert worker.call(f"{F}:kept_total") == 300.0


def test_repeated_calls_leak_no_descriptor(worker: Worker) -> None:
    array = gp.ones(100)
    worker.call(f"{F}:total", array)

    def open_files() -> set[tuple[str, str]]:
        found = set()
        for place in ("/proc/self/fd", f"/proc/{worker.pid}/fd"):
            for descriptor in Path(place).iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile, as that of this listing
                    found.add((str(descriptor), str(descriptor.readlink())))
        return found

    before = open_files()
    for _ in range(20):
        worker.call(f"{F}:total", array)
    # Fewer there may be: what earlier tests left open goes at any time. And a thread may open one for a moment.
    wait_until(lambda: not open_files() - before)


def test_errors_carry_type_message_and_remote_traceback(worker: Worker) -> None:
    with pytest.raises(WorkerTaskError, match="LookupError: no such thing") as caught:
        worker.call(f"{F}:fail")
    assert caught.value.kind == "LookupError"
    assert "worker_functions.py" in caught.value.remote_traceback
    assert worker.call(f"{F}:echo", 1) == 1


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        ("nonsense", "ValueError", "module:function"),
        ("__main__:f", "ValueError", "put the function into a module"),
        ("no_such_module_anywhere:f", "ModuleNotFoundError", "no_such_module_anywhere"),
        (f"{F}:absent", "AttributeError", "absent"),
        (f"{F}:not_a_function", "TypeError", "not a function"),
        (f"{F}:unsendable", "TypeError", "the result of"),
    ],
)
def test_bad_functions_and_results_are_named(worker: Worker, function: str, kind: str, message: str) -> None:
    with pytest.raises(WorkerTaskError, match=message) as caught:
        worker.call(function)
    assert caught.value.kind == kind


def test_arguments_that_cannot_travel_are_refused_by_name(worker: Worker) -> None:
    with pytest.raises(TypeError, match="argument 1 is a set"):
        worker.call(f"{F}:echo", 1, {2})
    with pytest.raises(TypeError, match="argument value is a ndarray"):
        worker.call(f"{F}:echo", value=np.ones(2))
    with pytest.raises(ValueError, match="argument 0: a worker takes C-contiguous arrays"):
        worker.call(f"{F}:total", gp.zeros((4, 6)).T)
    assert worker.call(f"{F}:echo", 1) == 1


def test_calls_from_several_threads_take_turns(worker: Worker) -> None:
    results: dict[int, object] = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: worker.call(f"{F}:echo", n)})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: n for n in range(8)}


def test_a_call_over_its_limit_kills_the_worker_and_restart_brings_another() -> None:
    with Worker() as own:
        first = own.pid
        with pytest.raises(WorkerTimeoutError, match=r"within 0\.3 s"):
            own.call(f"{F}:sleep", 300, timeout_s=0.3)
        assert not own.alive and first is not None and wait_gone(first)
        with pytest.raises(WorkerDiedError, match="restart"):
            own.call(f"{F}:echo", 1)
        own.restart()
        assert own.pid != first
        assert own.call(f"{F}:echo", 1) == 1


def test_a_worker_that_dies_is_reported_with_its_exit_code() -> None:
    with Worker() as own:
        with pytest.raises(WorkerDiedError, match="exit code 7") as caught:
            own.call(f"{F}:leave", 7)
        assert caught.value.exit_code == 7
        own.restart()
        pid = own.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match="signal 9"):
            own.call(f"{F}:echo", 1)


def test_a_thread_that_starts_a_worker_may_end() -> None:
    made: list[Worker] = []
    thread = threading.Thread(target=lambda: made.append(Worker()))
    thread.start()
    thread.join()
    time.sleep(0.2)
    with made[0] as own:
        assert own.call(f"{F}:echo", 5) == 5


def test_close_ends_the_process() -> None:
    own = Worker()
    pid = own.pid
    own.close()
    assert pid is not None and wait_gone(pid)
    assert not own.alive and own.pid is None
    assert "not running" in repr(own)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_it_dies_with_a_parent_that_is_killed(busy: bool) -> None:
    """The parent gets SIGKILL, so nothing in it can clean up."""
    code = textwrap.dedent(
        f"""
        import sys, threading
        sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
        from pygpukit.worker import Worker
        own = Worker()
        if {busy}:
            threading.Thread(target=lambda: own.call("worker_functions:sleep", 300)).start()
        print(own.pid, flush=True)
        import time; time.sleep(300)
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        time.sleep(0.3)
        parent.kill()
        assert wait_gone(pid)


def test_without_descriptor_passing_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "send_fds")
    with pytest.raises(WorkerError, match="file descriptors over a socket"):
        Worker()


def test_a_broken_message_is_refused() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall((5).to_bytes(4, "little") + b"[1,2]")
        with pytest.raises(ValueError, match="not an object"):
            protocol.receive(right)
        left.sendall((protocol.MAX_MESSAGE_BYTES + 1).to_bytes(4, "little"))
        with pytest.raises(ValueError, match="the limit is"):
            protocol.receive(right)
        left.close()
        with pytest.raises(EOFError):
            protocol.receive(right)
