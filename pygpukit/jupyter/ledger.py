"""Which notebook cell is running: tells the core, so that allocations and records carry the cell that caused them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import ranges, records
from pygpukit.jupyter import interrupt
from pygpukit.jupyter.output import DeviceOutput
from pygpukit.telemetry import cell_figures


@dataclass(frozen=True)
class RunningCell:
    """One cell under way. number: its execution count. raw: its text. filename: what its code is compiled under.
    mark: the state when it began. open_range: its range, where anybody listens."""

    id: int
    number: int
    raw: str
    filename: str
    begin_ns: int
    mark: cell_figures.Mark
    open_range: ranges.Range | None = None

    @property
    def first_record(self) -> int:
        """The ring's next record when it began."""
        return self.mark.first_record


class Ledger:
    """The pre_run_cell and post_run_cell hooks of one shell. Cells nest when a cell runs another through the shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._stack: list[RunningCell] = []
        self._output = DeviceOutput(shell)

    @property
    def current(self) -> RunningCell | None:
        """The innermost running cell."""
        return self._stack[-1] if self._stack else None

    def blank_lines_above(self) -> str:
        """Empty lines that stand before the magic in the running cell: IPython drops them, the user counts them."""
        raw = self.current.raw if self.current else ""
        above = raw[: len(raw) - len(raw.lstrip())]
        return "\n" * above.count("\n")

    def install(self) -> None:
        self._output.install()
        self._shell.events.register("pre_run_cell", self.begin)
        self._shell.events.register("post_run_cell", self.end)

    def remove(self) -> None:
        self._shell.events.unregister("pre_run_cell", self.begin)
        self._shell.events.unregister("post_run_cell", self.end)
        self._output.remove()
        for cell in reversed(self._stack):
            cell.mark.time.end()
        self._stack.clear()
        native.set_cell(0, None)

    def begin(self, info: Any) -> None:
        """pre_run_cell: the cell's id is the front end's, or In[n] in a terminal."""
        number = self._shell.execution_count - bool(info.store_history)
        raw = info.raw_cell or ""
        code = getattr(info, "transformed_cell", None) or raw
        cell = RunningCell(
            id=_core.intern(getattr(info, "cell_id", None) or f"In[{number}]"),
            number=number,
            raw=raw,
            filename=self._shell.compile.get_code_name(raw, code, number),
            begin_ns=_core.now_ns(),
            mark=cell_figures.mark(),
            open_range=ranges.begin("cell", f"In[{number}]", lambda: {"cell": number}),
        )
        self._output.cell_begins()
        self._stack.append(cell)
        native.set_cell(cell.id, cell.filename)
        _core.ring_push(records.CELL_BEGIN, cell=cell.id, a=number)

    def end(self, result: Any) -> None:
        """post_run_cell: also after an error or an interrupt. The cell that loaded the extension has no begin.

        What kernels printed up to now appears in the cell that ends; after Ctrl-C, also what the device still runs.
        """
        self._output.cell_ends()
        self._name_arrays()
        if self._stack and isinstance(getattr(result, "error_in_exec", None), KeyboardInterrupt):
            print(interrupt.report(self._stack[-1].first_record), file=sys.stderr)
        if not self._stack:
            return
        cell = self._stack.pop()
        if cell.open_range is not None:
            cell.open_range.end(getattr(result, "error_in_exec", None))
        wall_ns = _core.now_ns() - cell.begin_ns
        _core.ring_push(records.CELL_END, cell=cell.id, a=cell.number, b=wall_ns)
        cell_figures.ledger.add(cell_figures.measure(cell.mark, cell.id, cell.number, wall_ns), cell.mark.time)
        outer = self.current
        native.set_cell(outer.id if outer else 0, outer.filename if outer else None)

    def _name_arrays(self) -> None:
        """Memory reports call an array by the first public variable that held it at the end of a cell."""
        for name, value in list(self._shell.user_ns.items()):
            if isinstance(value, native.ArrayBase) and not name.startswith("_") and not value.name:
                value.name = name
