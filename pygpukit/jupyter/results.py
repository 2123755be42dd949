"""What a %%cuda cell shows: its kernels. The text is the same on every run; the HTML is static and needs no script."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from pygpukit.jit.kernel import JITKernel
from pygpukit.jit.unit import Unit

_CELL = 'style="text-align:left;padding:2px 12px 2px 0"'


class CellResult:
    """The kernels of one cell. kernels: by the name they are bound to. unit: the compiled source."""

    def __init__(self, unit: Unit, kernels: Mapping[str, JITKernel], loaded: bool = True) -> None:
        self.unit = unit
        self.loaded = loaded
        self.kernels = dict(kernels)

    def __repr__(self) -> str:
        lines = [_title(name, kernel) for name, kernel in self.kernels.items()]
        lines += [
            f"{one.name}: a template, bind it with --instantiate '{one.name}<...>'" for one in self.unit.templates
        ]
        if not self.loaded:
            lines.append(f"compiled for {self.unit.image.arch}, not loaded")
        return "\n".join(lines) or "no kernels"

    def _repr_html_(self) -> str:
        rows = "".join(_row(name, kernel) for name, kernel in self.kernels.items())
        notes = "".join(
            f"<div><code>{escape(one.name)}</code> is a template: bind it with <code>--instantiate "
            f"'{escape(one.name)}&lt;...&gt;'</code></div>"
            for one in self.unit.templates
        )
        warnings = escape(self.unit.image.log.strip())
        if warnings:
            notes += f"<details><summary>compiler messages</summary><pre>{warnings}</pre></details>"
        table = f"<table>{_head(self.kernels)}<tbody>{rows}</tbody></table>" if rows else ""
        return f'<div class="gk-kernels">{table}{notes}</div>'


def _title(name: str, kernel: JITKernel) -> str:
    """The signature under the name the kernel is bound to."""
    return f"{name}({', '.join(map(str, kernel.signature.parameters))})"


def _resources(kernel: JITKernel) -> dict[str, Any]:
    """What the compiler gave the kernel; registers only where they are real."""
    out: dict[str, Any] = {}
    if kernel.registers:
        out["registers"] = kernel.registers
        out["local bytes"] = kernel.local_bytes
        out["occupancy"] = f"{kernel.occupancy().fraction:.0%}"
    if kernel.shared_bytes is not None:
        out["shared bytes"] = kernel.shared_bytes
    return out


def _head(kernels: Mapping[str, JITKernel]) -> str:
    names = ["kernel", *_resources(next(iter(kernels.values())))]
    return "<thead><tr>" + "".join(f"<th {_CELL}>{name}</th>" for name in names) + "</tr></thead>"


def _row(name: str, kernel: JITKernel) -> str:
    values = [f"<code>{escape(_title(name, kernel))}</code>", *map(str, _resources(kernel).values())]
    return "<tr>" + "".join(f"<td {_CELL}>{value}</td>" for value in values) + "</tr>"
