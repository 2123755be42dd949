"""Arguments and results of tasks as bytes: the scheduler, which has no device, unpacks the arguments of tasks."""

from __future__ import annotations

from typing import Any

from distributed.protocol import pickle


class Packed:
    """Any objects as bytes, arrays among them. what: what Dask shows of it."""

    def __init__(self, content: Any, what: str) -> None:
        self.data, self.what = pickle.dumps(content), what

    def unpack(self) -> Any:
        """The objects, arrays on the current device."""
        return pickle.loads(self.data)

    def __repr__(self) -> str:
        return self.what
