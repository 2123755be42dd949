"""A forked child's view of a scheduler or a context: the error that says whose it is."""

from __future__ import annotations

from typing import Any, NoReturn


class Inherited:
    """Takes the place of the core in a child: the core's lock may be held by a thread that was not copied."""

    def __init__(self, what: str, remedy: str) -> None:
        self._text = f"{what} belong to the process that forked this one; {remedy}"

    def __getattr__(self, name: str) -> Any:
        self.refuse()

    def refuse(self) -> NoReturn:
        raise RuntimeError(self._text)

    def close(self) -> None:
        """Called when the copy is collected; there is nothing to close."""

    def abandon(self) -> None:
        """As close()."""
