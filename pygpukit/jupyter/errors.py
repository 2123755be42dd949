"""A compile error as a notebook shows it: the cell's own lines with a caret, and nothing of ours."""

from __future__ import annotations

from pygpukit.core.errors import CompileError
from pygpukit.jit.diagnostics import render

MAX_LINES = 15


class CudaCompileError(CompileError):
    """A `%%cuda` cell does not compile. Fields: log, diagnostics (the magic line is line 1), unit, source."""

    def __init__(self, error: CompileError, unit: str, source: str) -> None:
        super().__init__(error.args[0], error.log, error.diagnostics)
        self.unit = unit
        self.source = source

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        return render(self.diagnostics, self.unit, self.source, MAX_LINES) or [str(self)]
