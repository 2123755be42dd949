"""What a page may send in any place of a message: of every JSON kind, and at the ends of it."""

from __future__ import annotations

from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, float("nan"), float("inf"), "", "x" * 100_000, "<b>", [], [1], {}, {"a": [1]},
)  # fmt: skip
