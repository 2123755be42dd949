"""Names and expressions of a magic line, as the notebook's namespace gives them; the caller's own variables first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any

from IPython.core.error import UsageError


class Names:
    """A frozen view of what names mean. Values laid over it (`over`) win over the notebook's."""

    def __init__(self, *layers: Mapping[str, Any]) -> None:
        """Later layers win."""
        self._values: dict[str, Any] = {}
        for layer in layers:
            self._values.update(layer)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        """The value of a name, None when there is none."""
        return self._values.get(name)

    def over(self, layer: Mapping[str, Any]) -> Names:
        """These names with others laid over them."""
        return Names(self._values, layer)

    def evaluate(self, expression: str | CodeType, option: str) -> Any:
        """The value of a Python expression; `option` ("--grid") is named in the UsageError for one that has none."""
        text = expression if isinstance(expression, str) else None
        try:
            # One dictionary for globals and locals, so that comprehensions in the expression see every name too.
            return eval(expression if text is None else text.strip(), dict(self._values))
        except Exception as error:
            shown = option if text is None else f"{option} {text}"
            raise UsageError(f"%%cuda: {shown}: {type(error).__name__}: {error}") from None

    def integer(self, expression: str, option: str, minimum: int = 0) -> int:
        """The value of an expression that must be a whole number of at least `minimum`."""
        value = self.evaluate(expression, option)
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < minimum:
            raise UsageError(
                f"%%cuda: {option} {expression} is {value!r}; it must be a whole number, {minimum} or more"
            )
        return int(value.__index__())

    def number(self, expression: str, option: str) -> float:
        """The value of an expression that must be a number."""
        value = self.evaluate(expression, option)
        try:
            return float(value)
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise UsageError(f"%%cuda: {option} {expression} is a {kind}; it must be a number") from None


def callers_variables() -> Mapping[str, Any]:
    """Of whoever ran the magic that calls this: a function's own, where one calls run_cell_magic()."""
    frame: FrameType | None = sys._getframe(2)
    if frame is not None and frame.f_code.co_name == "run_cell_magic":
        frame = frame.f_back
    return frame.f_locals if frame is not None else {}
