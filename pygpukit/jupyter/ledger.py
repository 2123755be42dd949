"""Which notebook cell is running: tells the core, so that allocations and records carry the cell that caused them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pygpukit import _core
from pygpukit._core import native

_CELL_BEGIN = 64
_CELL_END = 65


@dataclass(frozen=True)
class RunningCell:
    """One cell under way. number: its execution count. raw: its text. filename: what its code is compiled under."""

    id: int
    number: int
    raw: str
    filename: str
    begin_ns: int


class Ledger:
    """The pre_run_cell and post_run_cell hooks of one shell. Cells nest when a cell runs another through the shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._stack: list[RunningCell] = []

    @property
    def current(self) -> RunningCell | None:
        """The innermost running cell."""
        return self._stack[-1] if self._stack else None

    def install(self) -> None:
        self._shell.events.register("pre_run_cell", self.begin)
        self._shell.events.register("post_run_cell", self.end)

    def remove(self) -> None:
        self._shell.events.unregister("pre_run_cell", self.begin)
        self._shell.events.unregister("post_run_cell", self.end)
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
        )
        self._stack.append(cell)
        native.set_cell(cell.id, cell.filename)
        _core.ring_push(_CELL_BEGIN, cell=cell.id, a=number)

    def end(self, _result: Any) -> None:
        """post_run_cell: also after an error or an interrupt. The cell that loaded the extension has no begin.

        What kernels printed on the simulated device up to the last wait appears in the cell that ends.
        """
        if printed := native.take_device_output():
            print(printed, end="")
        self._name_arrays()
        if not self._stack:
            return
        cell = self._stack.pop()
        _core.ring_push(_CELL_END, cell=cell.id, a=cell.number, b=_core.now_ns() - cell.begin_ns)
        outer = self.current
        native.set_cell(outer.id if outer else 0, outer.filename if outer else None)

    def _name_arrays(self) -> None:
        """Memory reports call an array by the first public variable that held it at the end of a cell."""
        for name, value in list(self._shell.user_ns.items()):
            if isinstance(value, native.ArrayBase) and not name.startswith("_") and not value.name:
                value.name = name
