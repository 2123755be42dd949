"""The parent's side: a worker to start, call, kill and restart."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .errors import WorkerDiedError, WorkerError, WorkerStoppedError, WorkerTaskError, WorkerTimeoutError
from .held import Export
from .protocol import MAX_DESCRIPTORS, VERSION, encode, plain, receive, send

START_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 5.0
_ASK_EVERY_MS = 20  # whether to go on waiting
# Who could not ask for so long, and hardly used the processor, was stopped, as by SIGSTOP or with the machine.
_STOPPED_S = 0.5
_STOPPED_SHARE = 0.1  # of one processor
_NO_LIMIT = "memory=65536GiB"  # of the simulated device; the last word in PYGPUKIT_SIM counts

# A worker dies with the thread that started it (Linux counts threads, not processes), so one thread that lives as
# long as the process starts them all.
_starter = ThreadPoolExecutor(1, "pygpukit-worker-starter")


class Worker:
    """A child process with its own device context, on the same backend as this process.

    `backend` names one to use instead: calls then hand over copies of arrays in host memory, not the arrays, and a
    simulated device there has as much memory as the host.
    An illegal address or an endless kernel there costs the worker, not this process. Arrays are shared, not copied:
    both sides see each other's writes. One call runs at a time; calls from several threads wait for each other.
    Raises WorkerError where processes cannot share memory (Windows), WorkerDiedError when the child does not start.
    """

    def __init__(
        self,
        name: str = "worker",
        backend: str | None = None,
        *,
        start: bool = True,
        environment: Callable[[], dict[str, str]] = dict,
        device: int = 0,
    ) -> None:
        """start: now, and wait for it; else by start(). environment: asked for more variables at each start. device:
        that its functions begin on, and the only one that it opens by itself."""
        self._environment = environment
        self.name, self.backend, self.device = name, backend, device
        self._lock = threading.RLock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lent: set[Export] = set()  # of segments that the process may have mapped
        if start:
            self.start()

    def __repr__(self) -> str:
        return f"Worker({self.name!r}, {'alive' if self.alive else 'not running'})"

    @property
    def pid(self) -> int | None:
        """Process id while it is alive, else None."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def alive(self) -> bool:
        return self._channel is not None and self._process is not None and self._process.poll() is None

    def start(self, stopped: Callable[[], bool] | None = None) -> None:
        """Start the process and wait until it has its device; nothing while it is alive. stopped: see exchange()."""
        if not hasattr(socket, "send_fds"):
            raise WorkerError(f"a worker process needs file descriptors over a socket, which {sys.platform} lacks")
        from ..core import child
        from ..core.backend import backend

        with self._lock:
            if self.alive:
                return
            ours, theirs = socket.socketpair()
            command = child.command("pygpukit.worker", str(theirs.fileno()), str(os.getpid()))
            environment = {**os.environ, "PYGPUKIT_BACKEND": self.backend or str(backend()), **self._environment()}
            if self.backend == "sim":
                environment["PYGPUKIT_SIM"] = ",".join(filter(None, (os.environ.get("PYGPUKIT_SIM"), _NO_LIMIT)))
            self._channel = ours
            with theirs:
                self._process = _starter.submit(
                    subprocess.Popen,
                    command,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C in a terminal is for this process; it decides about the worker
                ).result()
            hello = {"op": "hello", "version": VERSION, "path": sys.path, "device": self.device}
            answer, _ = self.exchange(hello, timeout_s=START_TIMEOUT_S, stopped=stopped)
            if not answer["ok"]:
                self.kill()
                raise WorkerError(f"the worker {self.name!r} could not start: {answer['error']['message']}")

    def call(self, function: str, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Run "module:function" in the worker and return its result.

        Arguments are JSON values or C-contiguous GPUArrays, which the worker sees as arrays over the same memory;
        results are JSON values (a function that makes data writes it into an array it was given). The device work of
        both sides is finished when this returns. Raises WorkerTaskError (the function raised), WorkerTimeoutError (and
        the worker is killed: nothing else stops a kernel), WorkerDiedError, and TypeError or ValueError for arguments
        that cannot travel. An interrupt kills the worker too; restart() brings a fresh one.
        """
        from .arrays import Handover, HostCopies

        plain, arrays = _split(args, kwargs)
        with self._lock:
            if not self.alive:
                raise self._died()
            with HostCopies(arrays) if self.backend else Handover(arrays) as handover:
                if len(handover.descriptors) > MAX_DESCRIPTORS:
                    count = len(handover.descriptors)
                    raise ValueError(f"arrays of {count} memory segments in one call; the limit is {MAX_DESCRIPTORS}")
                request = {
                    "op": "call",
                    "function": function,
                    **plain,
                    "segments": handover.segments,
                    "arrays": handover.descriptions,
                    "exports": list(handover.exports),
                }
                answer, _ = self.exchange(request, handover.descriptors, timeout_s, exports=handover.exports)
        if answer["ok"]:
            return answer["result"]
        error = answer["error"]
        raise WorkerTaskError(f"{function}: {error['kind']}: {error['message']}", error["kind"], error["traceback"])

    def exchange(
        self,
        request: dict[str, Any],
        descriptors: Sequence[int] = (),
        timeout_s: float | None = None,
        stopped: Callable[[], bool] | None = None,
        exports: list[Export] | None = None,
    ) -> tuple[dict[str, Any], list[int]]:
        """One request and its answer; descriptors that come with it are the caller's to close.

        exports: of the request's segments. They are taken out of the list, and end when an answer does not name them
        as held any more, or with the process.
        stopped: asked all the while; when it says so the worker is killed and WorkerStoppedError raised. Raises
        WorkerTimeoutError and WorkerDiedError, and kills the worker for an interrupt.
        """
        with self._lock:
            body = encode(request)
            channel = self._channel
            if channel is None:
                raise self._died()
            if exports:
                self._lent.update(exports)
                exports.clear()
            channel.settimeout(timeout_s)
            try:
                send(channel, body, descriptors)
                if stopped is not None or timeout_s is not None:
                    self._wait(channel, timeout_s, stopped)
                answer, received = receive(channel)
                self._keep({(device, number) for device, number in answer.pop("held")})
                return answer, received
            except WorkerStoppedError:
                self.kill()
                raise
            except TimeoutError:
                self.kill()
                message = f"the worker {self.name!r} did not answer within {timeout_s:g} s and was killed"
                raise WorkerTimeoutError(message, timeout_s or 0.0) from None
            except (EOFError, OSError):
                self.kill()
                raise self._died() from None
            except BaseException:  # an interrupt, or an answer that is none: nothing else stops what runs there
                self.kill()
                raise

    def _wait(self, channel: socket.socket, timeout_s: float | None, stopped: Callable[[], bool] | None = None) -> None:
        """Until there is something to read. Time in which this process was stopped does not count: a machine that was
        suspended has stopped the worker, too. Time in which another thread kept the interpreter does."""
        left_s, last_s, last_used_s = timeout_s, time.monotonic(), time.process_time()
        waiting = select.poll()
        waiting.register(channel, select.POLLIN)
        while not waiting.poll(_ASK_EVERY_MS):
            if stopped is not None and stopped():
                raise WorkerStoppedError(f"the worker {self.name!r} was killed: its work is not wanted any more")
            now_s, used_s = time.monotonic(), time.process_time()
            passed_s = now_s - last_s
            stopped_meanwhile = passed_s > _STOPPED_S and used_s - last_used_s < passed_s * _STOPPED_SHARE
            if left_s is not None and not stopped_meanwhile:
                left_s -= passed_s
                if left_s < 0:
                    raise TimeoutError
            last_s, last_used_s = now_s, used_s

    def _keep(self, held: set[Export]) -> None:
        """The process maps these of what it was lent; its hold of the others has ended."""
        ended, self._lent = self._lent - held, self._lent & held
        if ended:
            from .arrays import end_exports

            end_exports(ended)

    def _died(self) -> WorkerDiedError:
        code = self._process.returncode if self._process is not None else None
        how = "was not started" if code is None else f"ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
        return WorkerDiedError(f"the worker {self.name!r} {how}; restart() starts a fresh one", code)

    def kill(self) -> None:
        """End the process now, whatever it is doing; the driver takes its memory back. Safe from any thread."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._keep(set())

    def restart(self) -> None:
        """A fresh process and context under the same name."""
        self.kill()
        self.start()

    def close(self) -> None:
        """Let the process end by itself, and make sure of it after a few seconds."""
        with self._lock:
            if self._channel is not None and self._process is not None:
                self._channel.close()
                self._channel = None
                try:
                    self._process.wait(CLOSE_TIMEOUT_S)
                    self._keep(set())
                except subprocess.TimeoutExpired:
                    self.kill()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_channel", None) is not None:
            self.kill()


def _split(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Arguments as JSON values with {"array": place} where an array stands, and the arrays by argument name."""
    from .._core import native

    arrays: list[tuple[str, Any]] = []

    def one(name: str, value: Any) -> dict[str, Any]:
        if isinstance(value, native.ArrayBase):
            arrays.append((name, value))
            return {"array": len(arrays) - 1}
        return {"value": plain(f"argument {name}", value)}

    positional = [one(str(place), value) for place, value in enumerate(args)]
    named = {name: one(name, value) for name, value in kwargs.items()}
    return {"args": positional, "kwargs": named}, arrays
