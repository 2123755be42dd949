"""A replica of a served model: the actor on a worker, and what the client knows of it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pygpukit.dask.packed import Packed
from pygpukit.worker.child import describe


class Replica:
    """On a worker: the model, and the threads that answer requests."""

    def __init__(self, packed: Packed, threads: int) -> None:
        self._model = packed.unpack()()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="replica")

    async def ask(self, packed: Packed) -> tuple[bool, Any]:
        """(True, the packed result) or (False, the fields of its WorkerTaskError); what is raised is the worker's."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, packed)

    def _answer(self, packed: Packed) -> tuple[bool, Any]:
        try:
            method, args, kwargs = packed.unpack()
            return True, Packed(getattr(self._model, method)(*args, **kwargs), f"the result of {method}")
        except Exception as error:
            return False, describe(error)


class Ready:
    """A replica that answers. name: its worker's. future: keeps the actor alive. asked: requests under way."""

    def __init__(self, name: str, future: Any, actor: Any) -> None:
        self.name, self.future, self.actor, self.asked = name, future, actor, 0
