"""Reports of the last run of each %%cuda cell for the page: diagnostics by line, and the kernels that it made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from IPython.core.error import UsageError

from pygpukit.core.errors import Diagnostic, Finding, KernelCheckError
from pygpukit.cutile.block import TileCheckError
from pygpukit.jit.compile.diagnostics import parse_log, place
from pygpukit.jit.inspect.mentions import meant
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit, loaded_unit
from pygpukit.jupyter.card import CellResult, Launch
from pygpukit.jupyter.errors import CudaCompileError
from pygpukit.profiling.bench import BenchResult

MAX_CELLS = 1000  # the oldest are forgotten
MAX_DIAGNOSTICS = 100  # of one cell
_MAGIC = re.compile(r"\s*%%cuda(?!\w)")


@dataclass
class Report:
    """One cell. source: its text when it ran. findings: by the id of the cell whose run ended with them.
    kernels: held weakly, by the name that they were bound to. launch, bench: of its last run."""

    source: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    findings: dict[str, list[Diagnostic]] = field(default_factory=dict)
    kernels: WeakValueDictionary[str, JITKernel] = field(default_factory=WeakValueDictionary)
    launch: Launch | None = None
    bench: BenchResult | None = None

    def fields(self) -> dict[str, Any]:
        """For the page. Lines and columns count from 1 as the user sees the cell; column 0 is an unknown one."""
        problems = [*self.diagnostics, *(one for some in self.findings.values() for one in some)]
        return {
            "source": self.source,
            "kernels": list(self.kernels),
            "diagnostics": [
                {"line": one.line, "column": one.column, "severity": one.severity, "message": one.message}
                for one in problems[:MAX_DIAGNOSTICS]
            ],
        }


class Reports:
    """The post_run_cell hook of one shell. Cells are known by the front end's ids."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._reports: dict[str, Report] = {}

    def install(self) -> None:
        self._shell.events.register("post_run_cell", self.ended)

    def remove(self) -> None:
        self._shell.events.unregister("post_run_cell", self.ended)
        self._reports.clear()

    def get(self, cell: str) -> Report | None:
        return self._reports.get(cell)

    def ended(self, result: Any) -> None:
        """post_run_cell: keep what the run says about its own cell, or about the cell whose kernel it launched."""
        cell = getattr(result.info, "cell_id", None)
        if cell is None:
            return
        for report in self._reports.values():
            report.findings.pop(cell, None)
        raw = result.info.raw_cell or ""
        error = result.error_before_exec or result.error_in_exec
        own = self._begun(cell, raw) if _MAGIC.match(raw) else None
        if isinstance(error, KernelCheckError) and error.findings and not isinstance(error, TileCheckError):
            unit = loaded_unit(error.findings[0].kernel)
            about = own or self._of(unit)
            if about is not None and unit is not None:
                about.findings[cell] = list(_of_findings(error, unit))
        if own is None:
            return
        magic_line = 1 + raw[: len(raw) - len(raw.lstrip())].count("\n")
        if isinstance(error, CudaCompileError):
            own.diagnostics = _in_cell(error.diagnostics, error.unit, magic_line)
        elif isinstance(error, UsageError):
            own.diagnostics = [Diagnostic(magic_line, 0, "error", str(error))]
        elif isinstance(result.result, CellResult):
            finished = result.result
            own.diagnostics = _in_cell(_warnings(finished.unit), finished.unit.name, magic_line)
            own.kernels.update(finished.kernels)
            own.launch, own.bench = finished.launch, finished.bench

    def _begun(self, cell: str, raw: str) -> Report:
        """A new report in the place of the cell's last one."""
        self._reports.pop(cell, None)
        report = self._reports[cell] = Report(raw)
        while len(self._reports) > MAX_CELLS:
            del self._reports[next(iter(self._reports))]
        return report

    def _of(self, unit: Unit | None) -> Report | None:
        """The report of the cell that made a unit."""
        return next((one for one in self._reports.values() if any(k.unit is unit for k in one.kernels.values())), None)


def _warnings(unit: Unit) -> list[Diagnostic]:
    diagnostics = parse_log(unit.image.log, unit.source, unit.name)
    return [one for one in diagnostics if one.severity == "warning"]


def _in_cell(diagnostics: Sequence[Diagnostic], unit: str, magic_line: int) -> list[Diagnostic]:
    """Errors and warnings at their lines; what is in another file, or nowhere, stands at the magic with its place."""
    out: list[Diagnostic] = []
    for one in diagnostics:
        if one.file in (unit, "") and one.line > 0:
            out.append(one)
        else:
            elsewhere = place(one) if one.file != unit else ""
            out.append(Diagnostic(magic_line, 0, one.severity, elsewhere + one.message, unit))
    return out


def _of_findings(error: KernelCheckError, unit: Unit) -> Iterator[Diagnostic]:
    for one in error.findings:
        block, thread = one.block, one.thread
        message = f"{one.kind}: {one.message} (kernel {one.kernel}, block {block}, thread {thread})"
        yield Diagnostic(max(one.line, 1), _column(unit, one), "error", message, unit.name)


def _column(unit: Unit, one: Finding) -> int:
    """Where the line names the array as the finding means it; 0 where it does not."""
    lines = unit.source.split("\n")
    places = meant(lines[one.line - 1], one) if 1 <= one.line <= len(lines) else []
    return places[0].start + 1 if places else 0
