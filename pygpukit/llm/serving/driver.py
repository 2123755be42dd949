"""Driver: the thread that runs a model's steps for all answers of a server, and hands them to its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, TypeAlias

from pygpukit.core.errors import GPUError
from pygpukit.llm.serving.errors import RequestError

if TYPE_CHECKING:
    from pygpukit.llm.generation import Generation, Token
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.llm.serving.metrics import Metrics


_Items: TypeAlias = "list[Token | BaseException | None]"  # None at the end, after the error if there was one
# For each answer under way, between two pieces of a stream: so the event loop sends 4000 of them a second, which takes
# it a part of the time that it shares with the steps, however many streams there are.
_PIECE_S = 1 / 4000


class Running:
    """An answer under way. stop(), from any thread, ends it within one step. whole: nobody listens before its end.
    pause: tells the seconds that must be between two pieces of a stream, but for the last."""

    def __init__(self, generation: Generation, whole: bool, pause: Callable[[], float]) -> None:
        self.generation, self.whole, self._pause = generation, whole, pause
        self.seconds: float | None = None  # of the newest token
        self._queue: asyncio.Queue[_Items] = asyncio.Queue()

    def stop(self) -> None:
        """No more tokens."""
        self.generation.stop()

    async def tokens(self) -> AsyncIterator[list[Token]]:
        """The tokens as they come, those together that come within a pause. Leaving early, or being cancelled, stops
        the generation."""
        now, sent = asyncio.get_running_loop().time, -math.inf
        try:
            items: _Items = []
            while not items or items[-1] is not None:
                items = await self._queue.get()
                if items[-1] is not None and (left := sent + self._pause() - now()) > 0:
                    await asyncio.sleep(left)
                while not self._queue.empty():
                    items = items + self._queue.get_nowait()
                sent = now()
                yield [item for item in items if item is not None and not isinstance(item, BaseException)]
                for item in items:
                    if isinstance(item, GPUError):
                        raise RequestError(f"the model failed: {item}", status=500)
                    if isinstance(item, BaseException):
                        raise item
        finally:
            self.stop()

    async def end(self) -> None:
        """Returns when it has ended; as tokens() otherwise."""
        async for _ in self.tokens():
            pass

    def take(self) -> _Items:
        """Tokens that need no step, and what is at the end."""
        items: _Items = []
        try:
            while self.generation.has_news:
                items.append(next(self.generation, None))
                if items[-1] is None:
                    break
        except BaseException as error:
            items += [error, None]
        return items

    def wants(self, items: _Items) -> bool:
        """True if somebody listens to what take() gave."""
        return bool(items) and (not self.whole or items[-1] is None)

    def put(self, items: _Items) -> None:
        """Hand over what take() gave, in the event loop."""
        self._queue.put_nowait(items)


class Driver:
    """Runs a model as long as there are answers under way; made and asked in an event loop."""

    def __init__(self, model: CausalTransformerModel, metrics: Metrics) -> None:
        self._model, self._metrics = model, metrics
        self._running: dict[Running, None] = {}
        self._lock = threading.Lock()
        self._drives = False

    def start(self, generation: Generation, whole: bool) -> Running:
        """Take an answer along. whole: as Running's."""
        running, loop = Running(generation, whole, self._pause), asyncio.get_running_loop()
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

    def _pause(self) -> float:
        return len(self._running) * _PIECE_S

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
            if news := {running: items for running, items in taken.items() if running.wants(items)}:
                with contextlib.suppress(RuntimeError):  # the server has ended, and nobody listens
                    loop.call_soon_threadsafe(_put, news)
            with self._lock:
                for running in ended:
                    del self._running[running]
                if not self._running:
                    self._drives = False
                    return

    def _measure(self, running: Running, items: _Items) -> None:
        for item in items:
            if item is not None and not isinstance(item, BaseException):
                self._metrics.token(self._model.name, item, running.seconds)
                running.seconds = item.seconds


def _put(news: dict[Running, _Items]) -> None:
    for running, items in news.items():
        running.put(items)
