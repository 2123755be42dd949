"""The result card of a %%cuda cell: text that is the same on every run, and static HTML that needs no script."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pygpukit.core.errors import GPUError
from pygpukit.core.text import escape, human_bytes
from pygpukit.jit.inspect.occupancy import Occupancy
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.jupyter.card_bench import SweepPoint, bench_html, duration, sweep_html
from pygpukit.jupyter.card_listing import INSPECTED_ARCH, inspected, listings, listings_html, source_lines
from pygpukit.jupyter.card_profiled import profiled_html
from pygpukit.jupyter.card_verify import Verification, verify_html, verify_line
from pygpukit.profiling.bench import BenchResult
from pygpukit.worker.nsight import Profiled

__all__ = ["CellResult", "Launch", "SweepPoint", "Verification"]

_NOTHING = "no kernel is bound: the cell defines no __global__ function"
_BLOCKS = (64, 128, 256, 512, 1024)
_ORIGINS = {
    "compiled": "compiled",
    "uncached": "compiled, not cached: it reads files",
    "memory": "from the cache in memory",
    "disk": "from the cache on disk",
}


@dataclass(frozen=True)
class Launch:
    """A kernel launch of a cell."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        count = 1
        for extent in self.block:
            count *= extent
        return count

    def __str__(self) -> str:
        shared = f", {self.shared_bytes}" if self.shared_bytes else ""
        return f"{self.kernel}[{_extent(self.grid)}, {_extent(self.block)}{shared}]"


class CellResult:
    """The outcome of one cell. kernels: by the name they are bound to. unit: the compiled source.

    loaded: False for --no-launch. compile_ms: wall time of the compile or of the look-up. launch, bench, verify, sweep,
    profiled: what was asked for. listing: "ptx", "sass". header: the name under which other cells include it. repr()
    and text/plain have no time, address, path or identity.
    """

    def __init__(
        self,
        unit: Unit,
        kernels: Mapping[str, JITKernel],
        *,
        loaded: bool = True,
        compile_ms: float | None = None,
        launch: Launch | None = None,
        bench: BenchResult | None = None,
        verify: Sequence[Verification] = (),
        sweep: Sequence[SweepPoint] = (),
        profiled: Sequence[Profiled] = (),
        listing: Collection[str] = (),
        header: str = "",
    ) -> None:
        """Makes the listings. Raises ValueError for a listing that does not exist."""
        self.unit = unit
        self.kernels = dict(kernels)
        self.loaded = loaded
        self.header = header
        self.compile_ms = compile_ms
        self.launch = launch
        self.bench = bench
        self.verify = tuple(verify)
        self.sweep = tuple(sweep)
        self.profiled = tuple(profiled)
        self.listings = listings(unit, self.kernels, listing)
        self._inspected = inspected(unit, self.kernels) if self.listings and unit.image.kind == "sim" else {}

    # ---- text ----

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for name, kernel in self.kernels.items():
            yield _title(name, kernel)
        for one in self.unit.templates:
            yield f"{one.name}: a template, bind it with --instantiate '{one.name}<...>'"
        if self.header:
            yield f"other cells include this one: --with {self.header}"
        if self._binds_nothing:
            yield _NOTHING
        if not self.loaded:
            yield f"compiled for {self.unit.image.arch}, not loaded"
        if self.launch is not None:
            yield f"launched {self.launch}"
        for check in self.verify:
            yield verify_line(check)
        if self.bench is not None:
            yield repr(self.bench)
        if self.sweep:
            yield f"sweep: {', '.join(point.label for point in self.sweep)}"
        for report in self.profiled:
            yield f"{report.tool}: {len(report.metrics)} figures of {report.kernel}; print(_.profiled[...]) for them"
        if self.listings:
            yield f"listing: {', '.join(dict.fromkeys(one.kind for one in self.listings))}"

    # ---- HTML ----

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        card = f"gk-{self._identity()}"
        parts = [self._kernel_table(), *self._notes(), self._occupancy_html(), verify_html(self.verify)]
        if self.bench is not None:
            parts.append(bench_html(self.bench))
        if self.sweep:
            parts.append(sweep_html(self.sweep))
        parts += map(profiled_html, self.profiled)
        parts.append(listings_html(source_lines(self.unit.source, self.unit.name), self.listings, card))
        return f'<div class="gk-card {card}"><style>{style()}</style>{"".join(parts)}</div>'

    def _identity(self) -> str:
        """From the content alone: the same card has the same ids, another one has others."""
        kinds = [one.kind for one in self.listings]
        return sha256("\0".join([self.unit.name, self.unit.source, *self.kernels, *kinds]).encode()).hexdigest()[:10]

    def _kernel_table(self) -> str:
        if not self.kernels:
            return ""
        rows = [self._facts(name, self._inspected.get(name, kernel)) for name, kernel in self.kernels.items()]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{row.get(column, '')}</td>" for column in columns) + "</tr>" for row in rows
        )
        return f'<table class="gk-facts"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _facts(self, name: str, kernel: JITKernel) -> dict[str, str]:
        """The compiler's figures of the kernel, as HTML by column; registers only where they are real."""
        out = {"kernel": f'<code class="gk-name">{escape(_title(name, kernel))}</code>'}
        if kernel.registers:
            out["registers"] = str(kernel.registers)
            spilled = kernel.local_bytes or 0
            out["local (spills)"] = f'<span class="gk-warn">{human_bytes(spilled)}</span>' if spilled else "none"
        if kernel.shared_bytes is not None:
            out["shared"] = human_bytes(kernel.shared_bytes)
        if kernel.registers:
            launch = self.launch if self.launch is not None and self.launch.kernel == name else None
            threads = launch.threads if launch else min(kernel.block_size, _max_threads(kernel))
            occupancy = _occupancy(kernel, threads, launch.shared_bytes if launch else 0)
            limiter = f"blocks of {threads}" + (f", limited by {occupancy.limiter}" if occupancy else "")
            share = f"{occupancy.fraction:.0%}" if occupancy else "unknown"
            out["occupancy"] = f'{share} <span class="gk-muted">{limiter}</span>'
        return out

    def _occupancy_html(self) -> str:
        """Every kernel at the usual block sizes."""
        known = self._inspected or self.kernels
        kernels = {name: kernel for name, kernel in known.items() if kernel.registers}
        if not kernels:
            return ""
        head = "".join(f"<th>{block}</th>" for block in _BLOCKS)
        rows = "".join(f"<tr><td><code>{escape(name)}</code></td>{_occupancies(k)}</tr>" for name, k in kernels.items())
        table = f"<table><thead><tr><th>threads of a block</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<details><summary>occupancy by block size</summary>{table}</details>"

    @property
    def _binds_nothing(self) -> bool:
        return not (self.kernels or self.unit.templates or self.header)

    def _notes(self) -> Iterator[str]:
        if self._binds_nothing:
            yield f"<p>{escape(_NOTHING)}</p>"
        for one in self.unit.templates:
            yield (
                f"<p><code>{escape(one.name)}</code> is a template: bind it with <code>--instantiate "
                f"'{escape(one.name)}&lt;...&gt;'</code></p>"
            )
        image = self.unit.image
        where = "for the simulated device" if image.kind == "sim" else f"for {escape(image.arch)}"
        took = "" if self.compile_ms is None else f" in {duration(self.compile_ms * 1e3, 3)}"
        facts = [f"{_ORIGINS[image.origin]} {where}{took}"]
        if self._inspected:
            facts.append(f"registers and occupancy as for {INSPECTED_ARCH}")
        if not self.loaded:
            facts.append("not loaded")
        if self.launch is not None:
            facts.append(f"launched <code>{escape(str(self.launch))}</code>")
        yield f'<p class="gk-foot gk-small gk-muted">{" &middot; ".join(facts)}</p>'
        if messages := image.log.strip():
            yield f"<details open><summary>compiler messages</summary><pre>{escape(messages)}</pre></details>"


@cache
def style() -> str:
    """card.css on one line: it travels inside every card, because saved notebooks have nothing else."""
    text = Path(__file__).with_name("card.css").read_text(encoding="ascii")
    return "".join(line.strip() for line in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines())


def _title(name: str, kernel: JITKernel) -> str:
    """The signature under the name the kernel is bound to."""
    return f"{name}({', '.join(map(str, kernel.signature.parameters))})"


def _max_threads(kernel: JITKernel) -> int:
    bounds = kernel.signature.launch_bounds
    return bounds[0] if bounds and bounds[0] else _BLOCKS[-1]


def _occupancy(kernel: JITKernel, block: int, shared_bytes: int = 0) -> Occupancy | None:
    """None for an architecture whose rules are not known here."""
    try:
        return kernel.occupancy(block, shared_bytes)
    except GPUError:
        return None


def _occupancies(kernel: JITKernel) -> str:
    """A cell a block size; a dash where the kernel does not take as many threads."""
    occupancies = [_occupancy(kernel, block) if block <= _max_threads(kernel) else None for block in _BLOCKS]
    return "".join(
        f'<td>{one.fraction:.0%} <span class="gk-muted">{one.limiter}</span></td>' if one else "<td>-</td>"
        for one in occupancies
    )


def _extent(extent: tuple[int, ...]) -> str:
    """3 for (3, 1, 1): trailing ones say nothing."""
    shown = list(extent)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return str(shown[0]) if len(shown) == 1 else str(tuple(shown))
