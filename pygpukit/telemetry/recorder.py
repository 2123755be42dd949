"""Recording: a sink of the sampler that writes what a page would get to a trace file."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

from pygpukit import _core
from pygpukit.core.backend import backend
from pygpukit.telemetry import sampler, trace
from pygpukit.telemetry.feed import Feed
from pygpukit.telemetry.sensors import DeviceSampler
from pygpukit.telemetry.trace import Message


class Recorder:
    """A recording under way, from the moment it is made to stop(); keep it, or use it as `with record(path):`.

    A file on a full disk ends the recording with a warning; stop() then raises the OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        opened = backend()
        label = f"{_core.native.device_info(0)['name']}, {opened}"
        self._feed = Feed(label, device=DeviceSampler(0))
        self._lock = threading.Lock()
        self._failed: OSError | None = None
        self._file = self.path.open("xb")
        self.entries = 0
        trace.write_header(self._file, {"device": label, "pygpukit": _core.__version__})
        messages, self.since, self.since_name = self._feed.begin()
        for message in messages:
            self._write(message)
        self.visible = True
        sampler.add_sink(self)

    def send_frame(self, frame: bytes) -> None:
        """Called by the sampler."""
        with self._lock:
            if self._file.closed:
                return
            try:
                for message in self._feed.follow(frame):
                    self._write(message)
            except OSError as error:
                self._failed = error
                raise

    def stop(self) -> Path:
        """End the recording with one last frame; the file's path. Raises OSError where writing failed."""
        self.visible = False
        sampler.remove_sink(self)
        with self._lock:
            if not self._file.closed:
                if self._failed is None:
                    self._feed.flush()
                    frame, self.since, self.since_name = _core.telemetry_frame(0, self.since, self.since_name)
                    for message in self._feed.follow(frame):
                        self._write(message)
                self._file.close()
        if self._failed is not None:
            raise self._failed
        return self.path

    def _write(self, message: Message) -> None:
        trace.write_entry(self._file, _core.now_ns(), message)
        self.entries += 1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Recorder({self.path.name!r}, {'recording' if self.visible else 'stopped'})"
