"""A device that is pretended: choices are made as on it, and no kernel runs. kernels/planning.py opens one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Nothing:
    """A kernel whose launches do nothing."""

    def bind(self, *_: Any) -> Nothing:
        return self

    def __call__(self, *_: Any) -> None:
        pass


@dataclass
class Pretended:
    """arch: "sm_90a". facts: as of device_facts(). asked: the specs of the kernels that were to be launched."""

    arch: str
    facts: dict[str, Any]
    compiles: bool
    asked: dict[Any, None] = field(default_factory=dict)


current: Pretended | None = None
