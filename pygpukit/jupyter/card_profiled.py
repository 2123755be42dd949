"""A profiler's report in the result card: a table a section, the first of them open."""

from __future__ import annotations

from itertools import groupby

from pygpukit.core.text import escape
from pygpukit.worker.nsight import TOOLS, Metric, Profiled


def profiled_html(report: Profiled) -> str:
    """The section of one report."""
    sections = [(name, list(metrics)) for name, metrics in groupby(report.metrics, lambda one: one.section)]
    tables = "".join(_table(name, metrics, number == 0) for number, (name, metrics) in enumerate(sections))
    head = f"{TOOLS[report.tool]}: <code>{escape(report.kernel)}</code>"
    return f'<section><p class="gk-small gk-muted">{head}</p>{tables}</section>'


def _table(name: str, metrics: list[Metric], shown: bool) -> str:
    rows = "".join(
        f'<tr><td>{escape(one.name)}</td><td>{escape(one.value)}</td><td class="gk-muted">{escape(one.unit)}</td></tr>'
        for one in metrics
    )
    table = f'<table class="gk-facts"><tbody>{rows}</tbody></table>'
    return f"<details{' open' if shown else ''}><summary>{escape(name)}</summary>{table}</details>"
