"""Models: those of a server by name, each loaded when it is first asked for."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

from pygpukit.core.errors import GPUError, OutOfMemoryError
from pygpukit.llm.encoders.encoder import TextEncoder
from pygpukit.llm.serving.chatting import source_chats
from pygpukit.llm.serving.driver import Driver
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.metrics import Metrics

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel

Kind: TypeAlias = Literal["text", "asr", "tts"]
Load = Callable[[str, str, Kind], Any]  # from the path or name of a model, and what to call it
_WHAT = {"llm": "writes", "encoder": "makes vectors of texts", "asr": "hears", "tts": "speaks"}


@dataclass
class Loaded:
    """A model. kind: one of those above. beside: held by what is computed, beside its steps where it has any, one
    thing at a time. turn: when it was asked for last, as a number that grows."""

    model: Any
    kind: str
    beside: asyncio.Lock = field(default_factory=asyncio.Lock, kw_only=True)
    turn: int = field(default=0, kw_only=True)

    @property
    def idle(self) -> bool:
        """True if nothing is computed with it now."""
        return not self.beside.locked()


@dataclass
class Served(Loaded):
    """A model that writes, and the thread that runs it. adapter: the one that was asked for with it, as
    "model:adapter"."""

    model: CausalTransformerModel
    driver: Driver
    adapter: str | None = None

    @property
    def name(self) -> str:
        """The name that it was asked for by."""
        return self.model.name if self.adapter is None else f"{self.model.name}:{self.adapter}"

    @property
    def adapters(self) -> list[str]:
        """The names of its adapters, with the model's."""
        return [f"{self.model.name}:{adapter}" for adapter in getattr(self.model, "adapters", ())]

    @property
    def idle(self) -> bool:
        """True if nothing is computed with it now."""
        return super().idle and self.driver.idle


_LOOKS, _LOOK_S = 100, 0.05  # how often to look whether a dropped model is gone, and the pause between
_Kind = TypeVar("_Kind", bound=Loaded)


@dataclass
class _Place:
    """Where a model is, or is to be loaded from. chats: whether it answers in a conversation, None as long as nobody
    knows."""

    source: str = ""
    served: Loaded | None = None
    chats: bool | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self, served: Loaded) -> Loaded:
        """It is loaded."""
        template = getattr(getattr(served.model, "tokenizer", None), "chat_template", None)
        self.served, self.chats = served, served.kind == "llm" and template is not None
        return served


class Models:
    """The models of a server. loaded: one that is there. sources: names or paths of those that load() brings."""

    def __init__(self, loaded: CausalTransformerModel | TextEncoder, sources: Iterable[str], load: Load) -> None:
        self._load, self._started = load, int(time.time())
        self.metrics = Metrics(lambda: [served.model for served in self._all()], self.loaded)
        self._stopping, self._turn = False, 0
        self._places = {loaded.name: _Place()}
        self._places[loaded.name].take(self._of(loaded, "text"))
        for source in sources:
            self._places.setdefault(name_of(source), _Place(source, chats=source_chats(source)))

    @property
    def stopping(self) -> bool:
        """True if the server ends."""
        return self._stopping

    def described(self, name: str | None = None) -> list[dict[str, Any]]:
        """The models as the protocol lists them, or the one of that name. Raises RequestError where there is none."""
        if name is not None and name not in self._adapters():
            self._place(name)
        names = [name] if name is not None else [*self._places, *self._adapters()]
        common, loaded = {"object": "model", "created": self._started, "owned_by": "pygpukit"}, self.loaded()
        chat = {name: own.chats for name, own in self._places.items()}
        chat |= {name: chat[own.model.name] for own in self._all() for name in own.adapters if name not in chat}
        return [{"id": one, **common, "loaded": loaded.get(one, True), "chat": chat[one]} for one in names]

    def loaded(self) -> dict[str, bool]:
        """The names of all models, and whether they are loaded now."""
        return {name: place.served is not None for name, place in self._places.items()}

    async def get(self, name: str) -> Served:
        """A model that writes, loaded if need be while others are served, or with an adapter. Raises RequestError."""
        adapted = self._adapted(name)
        if adapted is not None:
            return adapted
        served = await self._loaded(name, "text")
        if not isinstance(served, Served):
            raise _wrong(name, served, _WHAT["llm"])
        return served

    def _adapted(self, name: str) -> Served | None:
        """The model with the adapter of that name; None where none is called so."""
        for own in self._all():
            if name in own.adapters and name not in self._places:
                return replace(self._used(own), adapter=name.removeprefix(f"{own.model.name}:"))
        return None

    async def embedder(self, name: str) -> Loaded:
        """A model that makes vectors of texts, one that writes too, as get(). Raises RequestError."""
        if name in self._adapters() and name not in self._places:
            raise RequestError(f"embeddings are of the model alone, not of {name!r}", "model")
        served = await self._loaded(name, "text")
        if served.kind not in ("llm", "encoder"):
            raise _wrong(name, served, _WHAT["encoder"])
        return served

    async def sound(self, name: str, kind: Literal["asr", "tts"]) -> Loaded:
        """A model that hears or speaks, as get(). Raises RequestError."""
        served = await self._loaded(name, kind)
        if served.kind != kind:
            raise _wrong(name, served, _WHAT[kind])
        return served

    async def _loaded(self, name: str, kind: Kind) -> Loaded:
        place = self._place(name)
        served = place.served
        if served is None:
            async with place.lock:  # who waited for it here finds it loaded
                served = place.served or place.take(await self._brought(place.source, name, kind))
        return self._used(served)

    async def _brought(self, source: str, name: str, kind: Kind) -> Loaded:
        """A model from its source; where memory does not suffice, others give way to it first."""
        while True:
            try:
                return self._of(await run_in_threadpool(self._whole, source, name, kind), kind)
            except OutOfMemoryError as error:
                refusal = RequestError(f"{name} cannot be loaded: {error}", "model", 503)
            except (GPUError, OSError, ValueError, ModuleNotFoundError) as error:
                raise RequestError(f"{name} cannot be loaded: {error}", "model", 503) from None
            dropped = self._drop()
            if dropped is None:
                raise refusal
            for _ in range(_LOOKS):  # an answer that has just ended may hold it for a moment
                await run_in_threadpool(gc.collect)
                if dropped() is None:
                    break
                await asyncio.sleep(_LOOK_S)

    def _whole(self, source: str, name: str, kind: Kind) -> Any:
        """A model with its KV cache, where it has one, which is otherwise made on first use."""
        model = self._load(source, name, kind)
        getattr(model, "cache", None)
        return model

    def _used(self, served: _Kind) -> _Kind:
        self._turn += 1
        served.turn = self._turn
        return served

    def _drop(self) -> weakref.ref[Any] | None:
        """Let go of the model that was asked for longest ago, of those that can be loaded again and have nothing to do:
        a weak reference to it; None where there is none."""
        idle = [
            (place.served.turn, name, place)
            for name, place in self._places.items()
            if place.source and place.served is not None and place.served.idle
        ]
        if not idle:
            return None
        _, name, place = min(idle, key=lambda entry: entry[0])
        dropped, place.served = place.served, None
        self.metrics.drop(name)
        return None if dropped is None else weakref.ref(dropped.model)

    def stop(self) -> None:
        """The server ends: answers under way end with a word."""
        self._stopping = True
        for served in self._all():
            served.driver.stop()

    def _all(self) -> list[Served]:
        return [place.served for place in self._places.values() if isinstance(place.served, Served)]

    def _adapters(self) -> list[str]:
        return [name for served in self._all() for name in served.adapters]

    def _of(self, model: Any, kind: Kind) -> Loaded:
        if kind != "text":
            return Loaded(model, kind)
        if isinstance(model, TextEncoder):
            return Loaded(model, "encoder")
        return Served(model, "llm", Driver(model, self.metrics))

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            there = ", ".join(map(repr, [*self._places, *self._adapters()]))
            raise RequestError(
                f"there is no model {name[:80]!r} here; there is {there}", "model", 404, "model_not_found"
            )
        return self._places[name]


def _wrong(name: str, served: Loaded, needed: str) -> RequestError:
    return RequestError(f"{name} is a model that {_WHAT[served.kind]}; here one is needed that {needed}", "model")


def name_of(source: str) -> str:
    """A model's name where it is not loaded yet: a name as it is, a path's last part."""
    path = Path(source).expanduser()
    return source if not path.exists() else path.resolve().name if path.is_dir() else path.stem
