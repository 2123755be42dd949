"""Stages: where each step of the pipeline runs, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from pygpukit.core.errors import InvalidSpecError

STAGES = ("transcribe", "generate", "speak")

Clock = Callable[[], float]
Contexts = Mapping[str, AbstractContextManager[Any]]


@dataclass(frozen=True)
class StageTime:
    """A row of a timeline. turn: its number, from 0. stage: "transcribe", "generate" (one sentence) or "speak" (one
    sentence). start, end: seconds since the end of what the user said was noticed. text: what came of it."""

    turn: int
    stage: str
    start: float
    end: float
    text: str


class Stages:
    """The context of each stage, and the clock, which is monotonic."""

    def __init__(self, contexts: Contexts | None = None, clock: Clock = time.monotonic) -> None:
        for name in contexts or {}:
            if name not in STAGES:
                raise InvalidSpecError(f"there is no stage {name!r}; there are {', '.join(STAGES)}", "contexts")
        self._contexts, self.clock = dict(contexts or {}), clock

    @contextmanager
    def session(self, stage: str) -> Iterator[None]:
        """A step of a stage: in its context, with its stream and its share, where it has one."""
        with self._contexts.get(stage, nullcontext()):
            yield
