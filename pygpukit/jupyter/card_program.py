"""The result card of a cell that is a whole program."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from pygpukit.core.text import escape, human_bytes
from pygpukit.jupyter.card import style
from pygpukit.profiling.limits import Limits
from pygpukit.profiling.table import timeline
from pygpukit.program.result import Result
from pygpukit.program.table import COPY_HEAD, KERNEL_HEAD, copy_row, kernel_row, notes, span_ns, time_text


class ProgramResult:
    """The card of one program. result: how it ended and what it ran. compile_s, total_s: wall times. limits: of the
    device, where they are measured.

    repr() and text/plain have no time, address or path.
    """

    def __init__(
        self, result: Result, compile_s: float, total_s: float, limits: Limits | None = None, simulated: bool = False
    ) -> None:
        self.result, self.compile_s, self.total_s = result, compile_s, total_s
        self.limits, self.simulated = limits, simulated

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write when its kernels and copies ran as Trace Event JSON, for Perfetto."""
        from pygpukit.profiling.chrome import write_works

        write_works(self.result.works, path)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.result.ending
        for kernel in self.result.kernels:
            yield f"{kernel.name}: {_times(kernel.launches, 'launch', 'launches')}"
        for copy in self.result.copies:
            yield f"{copy.direction}: {_times(copy.count, 'copy', 'copies')}, {human_bytes(copy.nbytes)}"
        yield from map(str, self.result.findings)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        good = self.result.exit_code == 0 and self.result.timeout_s is None
        ending = f'<span class="gk-{"good" if good else "bad"}">{escape(self.result.ending)}</span>'
        findings = "".join(f"<tr><td>{escape(str(one))}</td></tr>" for one in self.result.findings)
        times = f"compiled in {time_text(self.compile_s)} &middot; ran for {time_text(self.result.seconds)}"
        works = self.result.works
        parts = [
            f"<p>{ending}</p>",
            f'<table class="gk-facts"><tbody>{findings}</tbody></table>' if findings else "",
            _html(KERNEL_HEAD, [kernel_row(one, self.limits) for one in self.result.kernels]),
            _html(COPY_HEAD, [copy_row(one) for one in self.result.copies]),
            timeline(works, *span_ns(works)) if works else "",
            *(f'<p class="gk-small gk-muted">{one}</p>' for one in notes(self.result, self.simulated)),
            f'<p class="gk-foot gk-small gk-muted">{times}</p>',
        ]
        return f'<div class="gk-card gk-program"><style>{style()}</style>{"".join(parts)}</div>'


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _html(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    heads = "".join(f"<th>{one}</th>" for one in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f'<table class="gk-facts"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
