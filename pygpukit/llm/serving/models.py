"""Models: those of a server by name, each loaded when it is first asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from starlette.concurrency import run_in_threadpool

from pygpukit.core.errors import GPUError
from pygpukit.llm.serving.driver import Driver
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.metrics import Metrics

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel

Kind: TypeAlias = Literal["llm", "asr", "tts"]
Load = Callable[[str, str, Kind], Any]  # from the path or name of a model, and what to call it
_WHAT = {"llm": "writes", "asr": "hears", "tts": "speaks"}


@dataclass
class Served:
    """A model, and the thread that runs it. beside: held by what is computed beside its steps, one thing at a time."""

    model: CausalTransformerModel
    driver: Driver
    beside: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass
class Sound:
    """A model that hears or speaks; beside: as Served's."""

    model: Any
    kind: Kind
    beside: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass
class _Place:
    """Where a model is, or is to be loaded from."""

    source: str = ""
    served: Served | Sound | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Models:
    """The models of a server. loaded: one that is there. sources: names or paths of those that load() brings."""

    def __init__(self, loaded: CausalTransformerModel, sources: Iterable[str], load: Load) -> None:
        self._load, self._started = load, int(time.time())
        self.metrics = Metrics(lambda: [served.model for served in self._all()])
        self._stopping = False
        self._places = {loaded.name: _Place(served=self._served(loaded))}
        for source in sources:
            self._places.setdefault(name_of(source), _Place(source))

    @property
    def stopping(self) -> bool:
        """True if the server ends."""
        return self._stopping

    def described(self, name: str | None = None) -> list[dict[str, Any]]:
        """The models as the protocol lists them, or the one of that name. Raises RequestError where there is none."""
        if name is not None:
            self._place(name)
        names = [name] if name is not None else list(self._places)
        return [{"id": one, "object": "model", "created": self._started, "owned_by": "pygpukit"} for one in names]

    async def get(self, name: str) -> Served:
        """A model that writes, loaded if need be while others are served. Raises RequestError."""
        served = await self._loaded(name, "llm")
        if isinstance(served, Sound):
            raise RequestError(f"{name} is a model that {_WHAT[served.kind]}; here one is needed that writes", "model")
        return served

    async def sound(self, name: str, kind: Kind) -> Sound:
        """A model that hears or speaks, as get(). Raises RequestError."""
        served = await self._loaded(name, kind)
        if not isinstance(served, Sound) or served.kind != kind:
            own = served.kind if isinstance(served, Sound) else "llm"
            raise RequestError(f"{name} is a model that {_WHAT[own]}; here one is needed that {_WHAT[kind]}", "model")
        return served

    async def _loaded(self, name: str, kind: Kind) -> Served | Sound:
        place = self._place(name)
        if place.served is not None:
            return place.served
        async with place.lock:
            if place.served is None:
                try:
                    model = await run_in_threadpool(self._load, place.source, name, kind)
                except (GPUError, OSError, ValueError, ModuleNotFoundError) as error:
                    raise RequestError(f"{name} cannot be loaded: {error}", "model", 503) from None
                place.served = self._served(model) if kind == "llm" else Sound(model, kind)
        return place.served

    def stop(self) -> None:
        """The server ends: answers under way end with a word."""
        self._stopping = True
        for served in self._all():
            served.driver.stop()

    def _all(self) -> list[Served]:
        return [place.served for place in self._places.values() if isinstance(place.served, Served)]

    def _served(self, model: CausalTransformerModel) -> Served:
        return Served(model, Driver(model, self.metrics))

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            there = ", ".join(map(repr, self._places))
            raise RequestError(
                f"there is no model {name[:80]!r} here; there is {there}", "model", 404, "model_not_found"
            )
        return self._places[name]


def name_of(source: str) -> str:
    """A model's name where it is not loaded yet: a name as it is, a path's last part."""
    path = Path(source).expanduser()
    return source if not path.exists() else path.resolve().name if path.is_dir() else path.stem
