"""Comparisons with references in the result card: a row an array, its largest errors beside what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pygpukit.core.text import escape


class Verification(Protocol):
    """The comparison of one array with its reference."""

    @property
    def name(self) -> str: ...
    @property
    def passed(self) -> bool: ...
    @property
    def rtol(self) -> float: ...
    @property
    def atol(self) -> float: ...
    @property
    def max_abs_error(self) -> float: ...
    @property
    def max_rel_error(self) -> float: ...
    @property
    def message(self) -> str: ...


def verify_line(check: Verification) -> str:
    """The comparison as text that is the same on every run."""
    return f"verified {check.name}" if check.passed else f"NOT verified {check.name}: {check.message}"


def verify_html(checks: Iterable[Verification]) -> str:
    """The section of the comparisons; "" for none."""
    rows = []
    for check in checks:
        mark, style = ("&#10003; verified", "gk-good") if check.passed else ("&#10007; NOT verified", "gk-bad")
        figures = f"largest error {check.max_abs_error:.3g}, relative {check.max_rel_error:.3g}"
        allowed = f"allowed {check.atol:.3g} + {check.rtol:.3g} of the reference"
        rows.append(
            f'<tr><td><span class="{style}">{mark}</span> <code>{escape(check.name)}</code></td>'
            f'<td>{figures}</td><td class="gk-muted">{allowed}</td></tr>'
        )
        if not check.passed:
            rows.append(f'<tr><td colspan="3">{escape(check.message)}</td></tr>')
    return f'<section><table class="gk-facts"><tbody>{"".join(rows)}</tbody></table></section>' if rows else ""
