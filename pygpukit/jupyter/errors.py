"""Errors as a notebook shows them: the cell's own lines with a caret, or the numbers that differ; nothing of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pygpukit.core.errors import CompileError, GPUError
from pygpukit.jit.compile.diagnostics import render

if TYPE_CHECKING:
    from pygpukit.jupyter.verify import Verification

MAX_LINES = 15


@contextlib.contextmanager
def shown_without_frames() -> Iterator[None]:
    """Errors of the package that are raised inside show their text alone: all of their frames are the package's."""
    try:
        yield
    except GPUError as error:
        if type(error)._render_traceback_ is GPUError._render_traceback_ and "_render_traceback_" not in vars(error):
            lines = f"{type(error).__name__}: {error}".splitlines()
            error._render_traceback_ = lambda: lines  # type: ignore[method-assign]
        raise


class CudaCompileError(CompileError):
    """A `%%cuda` cell does not compile.

    Fields: log, diagnostics (lines as the user counts them, the magic is line 1; file names the cell, or the included
    cell), unit (name of the cell), source, sources (text by file name), context (which configuration of a sweep).
    """

    def __init__(self, error: CompileError, unit: str, sources: Mapping[str, str], context: str = "") -> None:
        super().__init__(f"{context}{error.args[0]}", error.log, error.diagnostics)
        self.unit = unit
        self.sources = dict(sources)
        self.source = self.sources[unit]
        self.context = context

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        shown = render(self.diagnostics, self.sources, MAX_LINES - bool(self.context)) or [str(self.args[0])]
        return [self.context.rstrip(), *shown] if self.context else shown


class VerificationError(GPUError, AssertionError):
    """The outputs of a `%%cuda` cell differ from the reference. Field: verifications, one an output."""

    def __init__(self, message: str, verifications: Sequence[Verification] = ()) -> None:
        super().__init__(message)
        self.verifications = tuple(verifications)

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        return [f"VerificationError: {self}"]
