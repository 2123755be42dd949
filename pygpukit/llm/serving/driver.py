"""Driver: the thread that runs a model's steps for all answers of a server, and hands them to its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from pygpukit.core.errors import GPUError
from pygpukit.llm.serving.errors import RequestError

if TYPE_CHECKING:
    from pygpukit.llm.generation import Generation, Token
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.llm.serving.metrics import Metrics


class Running:
    """An answer under way. stop(), from any thread, ends it within one step."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.seconds: float | None = None  # of the newest token
        self._queue: asyncio.Queue[Token | BaseException | None] = asyncio.Queue()

    def stop(self) -> None:
        """No more tokens."""
        self.generation.stop()

    async def tokens(self) -> AsyncIterator[Token]:
        """The tokens as they come. Leaving early, or being cancelled, stops the generation."""
        try:
            while (item := await self._queue.get()) is not None:
                if isinstance(item, GPUError):
                    raise RequestError(f"the model failed: {item}", status=500)
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.stop()

    def take(self) -> list[Token | BaseException | None]:
        """Tokens that need no step, and at the end None, after the error if there was one."""
        items: list[Token | BaseException | None] = []
        try:
            while self.generation.has_news:
                items.append(next(self.generation, None))
                if items[-1] is None:
                    break
        except BaseException as error:
            items += [error, None]
        return items

    def put(self, items: list[Token | BaseException | None]) -> None:
        """Hand over what take() gave, in the event loop."""
        for item in items:
            self._queue.put_nowait(item)


class Driver:
    """Runs a model as long as there are answers under way; made and asked in an event loop."""

    def __init__(self, model: CausalTransformerModel, metrics: Metrics) -> None:
        self._model, self._metrics = model, metrics
        self._running: dict[Running, None] = {}
        self._lock = threading.Lock()
        self._drives = False

    def start(self, generation: Generation) -> Running:
        """Take an answer along."""
        running, loop = Running(generation), asyncio.get_running_loop()
        with self._lock:
            self._running[running] = None
            if not self._drives:
                self._drives = True
                threading.Thread(target=self._drive, args=(loop,), name="pygpukit-serve", daemon=True).start()
        return running

    @property
    def idle(self) -> bool:
        """True if no answer is under way."""
        with self._lock:
            return not self._drives

    def stop(self) -> None:
        """End all answers."""
        for running in self._all():
            running.stop()

    def _all(self) -> list[Running]:
        with self._lock:
            return list(self._running)

    def _drive(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            failed: BaseException | None = None
            try:
                self._model.run_until(lambda: any(running.generation.has_news for running in self._all()))
            except BaseException as error:  # of a step: its answers have it, too
                failed = error
            taken = {running: running.take() for running in self._all()}
            if failed is not None and not any(taken.values()):
                taken = {running: [failed, None] for running in taken}
            ended = [running for running, items in taken.items() if items and items[-1] is None]
            for running, items in taken.items():
                self._measure(running, items)
            for running in ended:
                running.generation.close()
                self._metrics.answer(self._model.name, running.generation.completion)
            with contextlib.suppress(RuntimeError):  # the server has ended, and nobody listens
                loop.call_soon_threadsafe(_put, taken)
            with self._lock:
                for running in ended:
                    del self._running[running]
                if not self._running:
                    self._drives = False
                    return

    def _measure(self, running: Running, items: list[Token | BaseException | None]) -> None:
        for item in items:
            if item is not None and not isinstance(item, BaseException):
                self._metrics.token(self._model.name, item, running.seconds)
                running.seconds = item.seconds


def _put(taken: dict[Running, list[Token | BaseException | None]]) -> None:
    for running, items in taken.items():
        running.put(items)
