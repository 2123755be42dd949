"""The result card of a %%cutile cell: its kernels, the launch, comparisons and measurements."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pygpukit.core.text import escape
from pygpukit.cutile import Kernel
from pygpukit.jupyter.card import style
from pygpukit.jupyter.card_bench import bench_html
from pygpukit.jupyter.card_verify import Verification, verify_html, verify_line
from pygpukit.profiling.bench import BenchResult

_NOTHING = "the cell defines no @ct.kernel function"


class CutileResult:
    """The outcome of one cell. kernels: by the name of their function. launch: "add[8]", "" for none; verify, bench:
    what was asked for. checked: the interpreter ran it."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        *,
        launch: str = "",
        checked: bool = False,
        verify: Sequence[Verification] = (),
        bench: BenchResult | None = None,
    ) -> None:
        self.kernels = dict(kernels)
        self.launch, self.checked = launch, checked
        self.verify, self.bench = tuple(verify), bench

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from map(_title, self.kernels.values())
        if not self.kernels:
            yield _NOTHING
        if self.launch:
            yield f"launched {self.launch}{self._how}"
        yield from map(verify_line, self.verify)
        if self.bench is not None:
            yield repr(self.bench)

    @property
    def _how(self) -> str:
        return ", every access checked" if self.checked else ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        names = [f'<p><code class="gk-name">{escape(_title(one))}</code></p>' for one in self.kernels.values()]
        parts = names or [f"<p>{escape(_NOTHING)}</p>"]
        if self.launch:
            words = f"launched <code>{escape(self.launch)}</code>{self._how}"
            parts.append(f'<p class="gk-foot gk-small gk-muted">{words}</p>')
        parts.append(verify_html(self.verify))
        if self.bench is not None:
            parts.append(bench_html(self.bench))
        return f'<div class="gk-card"><style>{style()}</style>{"".join(parts)}</div>'


def _title(kernel: Kernel) -> str:
    """The kernel with the names of its parameters."""
    return f"{kernel.name}({', '.join(inspect.signature(kernel.function).parameters)})"
