"""A progress bar for bytes or things: one line in a terminal or in a notebook, nothing where neither is there."""

from __future__ import annotations

import html
import sys
import time
from types import TracebackType
from typing import Any

from pygpukit.core.text import human_bytes

_PERIOD_S = 0.1
_WIDTH = 30


class Progress:
    """A bar over `total` bytes, from `with` to its end; it disappears then. what says what happens, in a few words.
    things: what is counted instead of bytes, "kernels".

    shown=False draws nothing. update() and add() may be called often: the line is drawn ten times a second at most.
    """

    def __init__(self, what: str, total: int, shown: bool = True, things: str = "") -> None:
        self.what, self.total, self.done, self.things = what, total, 0, things
        self._started = self._drawn = time.monotonic()
        self._display: Any = None
        self._terminal = shown and sys.stderr is not None and sys.stderr.isatty()
        if shown and _in_notebook():
            from IPython.display import display

            self._terminal = False
            self._display = display({"text/plain": self.line(), "text/html": self._html()}, raw=True, display_id=True)

    def add(self, count: int) -> None:
        """So many more."""
        self.update(self.done + count)

    def update(self, done: int) -> None:
        """So many in all."""
        self.done = done
        now = time.monotonic()
        if now - self._drawn < _PERIOD_S:
            return
        self._drawn = now
        if self._display is not None:
            self._display.update({"text/plain": self.line(), "text/html": self._html()}, raw=True)
        elif self._terminal:
            print(f"\r\x1b[K{self.line()}", end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """The bar as text: name, bar, bytes, rate."""
        full = round(self._share() * _WIDTH)
        return f"{self.what} [{'#' * full}{'.' * (_WIDTH - full)}] {self._figures()}"

    def _figures(self) -> str:
        if self.things:
            return f"{self.done} of {self.total} {self.things}"
        rate = self.done / max(time.monotonic() - self._started, 1e-3)
        return f"{human_bytes(self.done)} of {human_bytes(self.total)}, {human_bytes(int(rate))}/s"

    def _share(self) -> float:
        return min(self.done / self.total, 1.0) if self.total else 1.0

    def _html(self) -> str:
        what = html.escape(self.what)
        bar = f'<progress max="1" value="{self._share():.3f}" aria-label="{what}"></progress>'
        return f"<div>{what} {bar} {html.escape(self._figures())}</div>"

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.update({"text/plain": "", "text/html": ""}, raw=True)
        elif self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None) is not None
