"""The map that suite `shapes` measures: 60 operations, 16 shapes and layouts, and how each library spells them.

The expressions see `x`, `y`: arrays of a shape. `r`: a vector for each row. `pick`: the numbers of the rows in random
order. `p`: a position in each row for each of its elements. `mask`: bools, half of them true. Axis 1 is the last of two
axes and the middle of three. An empty expression: the library has no such function, or not as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

DTYPES = ("float32", "bfloat16", "int64")
HOST_ELEMENTS = 256  # of the calls whose cost on the host is measured: 16 rows of 16
HOST_SHAPE = (16, 16)


@dataclass(frozen=True)
class Layout:
    """A shape; offset: elements that lie before it in memory; margin: elements between its rows, beside its own."""

    name: str
    shape: tuple[int, ...]
    offset: int = 0
    margin: int = 0

    def at(self, backend: str) -> Layout:
        """The same for a backend: on the simulated device long axes are short."""
        if backend != "sim":
            return self
        return Layout(self.name, tuple(min(extent, 8 + extent % 13) for extent in self.shape), self.offset, self.margin)

    @property
    def label(self) -> str:
        return "x".join(map(str, self.shape))


LAYOUTS = (
    Layout("aligned", (8192, 5120)),
    Layout("rows of 4 more", (8192, 5124)),
    Layout("odd", (8190, 5121)),
    Layout("prime", (4093, 8191)),
    Layout("tall", (100000, 100)),
    Layout("tall, prime", (1000003, 7)),
    Layout("wide", (100, 100000)),
    Layout("wide, prime", (7, 1000003)),
    Layout("tiny", (16, 16)),
    Layout("one row", (1, 4096)),
    Layout("few rows", (64, 4096)),
    Layout("small, odd", (333, 777)),
    Layout("middle axis", (64, 1024, 512)),
    Layout("middle axis, odd", (61, 1021, 511)),
    Layout("offset of 1", (8192, 5120), offset=1),
    Layout("rows of a wider array", (4096, 4095), margin=1),
)


@dataclass(frozen=True)
class Operation:
    """One operation. floats: not of integers. sorts: left out of limits on the share of the copy rate."""

    name: str
    gp: str
    torch: str
    cupy: str
    floats: bool = False
    sorts: bool = False

    def suits(self, dtype: str) -> bool:
        return not (self.floats and dtype.startswith("int"))


def _same(name: str, call: str, floats: bool = False) -> Operation:
    """One that all spell alike: a function of the library, L, or an operator."""
    gp, torch, cupy = (call.replace("L.", f"{own}.") for own in ("gp", "torch", "cp"))
    return Operation(name, gp, torch, cupy, floats)


def _reduction(name: str, axis: int | None, floats: bool = False, torch: str = "") -> Operation:
    argument = "" if axis is None else f", {axis}"
    title = name if axis is None else f"{name}, axis {axis}"
    return Operation(
        title, f"gp.{name}(x{argument})", torch or f"torch.{name}(x{argument})", f"cp.{name}(x{argument})", floats
    )


OPERATIONS = (
    _same("add", "x + y"),
    _same("sub", "x - y"),
    _same("mul", "x * y"),
    _same("div", "x / y"),
    _same("add a number", "x + 2"),
    _same("add a row", "x + x[:1]"),
    _same("add a column", "x + x[:, :1]"),
    _same("add, strided", "x[:, :-1:2] + x[:, 1::2]"),
    _same("less", "x < y"),
    _same("maximum", "L.maximum(x, y)"),
    _same("negative", "-x"),
    _same("abs", "L.abs(x)"),
    Operation("clip", "gp.clip(x, -1, 1)", "torch.clip(x, -1, 1)", "cp.clip(x, -1, 1)"),
    _same("where", "L.where(mask, x, y)"),
    _same("exp", "L.exp(x)", floats=True),
    _same("tanh", "L.tanh(x)", floats=True),
    _same("isnan", "L.isnan(x)", floats=True),
    Operation("gelu", "gp.gelu(x)", "F.gelu(x)", "", floats=True),
    Operation("silu", "gp.silu(x)", "F.silu(x)", "", floats=True),
    Operation("convert to float64", "x.astype('float64')", "x.double()", "x.astype('float64')"),
    _reduction("sum", None),
    _reduction("sum", 0),
    _reduction("sum", 1),
    _reduction("mean", 1, floats=True),
    _reduction("max", 0, torch="torch.amax(x, 0)"),
    _reduction("max", 1, torch="torch.amax(x, 1)"),
    _reduction("argmax", 1),
    _reduction("prod", 1),
    _reduction("all", 1),
    _reduction("count_nonzero", 0),
    _reduction("var", 1, floats=True),
    _reduction("std", 0, floats=True),
    Operation("norm, axis 1", "gp.norm(x, 1)", "torch.linalg.vector_norm(x, dim=1)", "cp.linalg.norm(x, axis=1)", True),
    Operation("logsumexp, axis 1", "gp.logsumexp(x, 1)", "torch.logsumexp(x, 1)", "", True),
    _reduction("cumsum", 0),
    _reduction("cumsum", 1),
    _reduction("cumprod", 1),
    Operation("softmax, last axis", "gp.softmax(x)", "torch.softmax(x, -1)", "special.softmax(x, -1)", True),
    Operation("softmax, axis 0", "gp.softmax(x, 0)", "torch.softmax(x, 0)", "special.softmax(x, 0)", True),
    Operation("log_softmax", "gp.log_softmax(x)", "torch.log_softmax(x, -1)", "special.log_softmax(x, -1)", True),
    Operation("rmsnorm", "gp.rmsnorm(x, r)", "F.rms_norm(x, r.shape, r, 1e-5)", "", True),
    Operation("layernorm", "gp.layernorm(x, r, r)", "F.layer_norm(x, r.shape, r, r, 1e-5)", "", True),
    Operation("copy", "x.clone()", "x.clone(memory_format=torch.contiguous_format)", "x.copy()"),
    Operation(
        "transpose", "gp.swapaxes(x, 0, 1).clone()", "x.transpose(0, 1).contiguous()",
        "cp.ascontiguousarray(cp.swapaxes(x, 0, 1))",
    ),
    Operation("flip", "gp.flip(x, 1).clone()", "torch.flip(x, (1,))", "cp.flip(x, 1).copy()"),
    _same("concatenate, axis 0", "L.concatenate((x, y))"),
    Operation("concatenate, axis 1", "gp.concatenate((x, y), 1)", "torch.cat((x, y), 1)", "cp.concatenate((x, y), 1)"),
    _same("stack", "L.stack((x, y))"),
    Operation("take rows", "gp.take(x, pick, 0)", "x.index_select(0, pick)", "cp.take(x, pick, 0)"),
    Operation(
        "take along axis 1", "gp.take_along_axis(x, p, 1)", "torch.gather(x, 1, p)", "cp.take_along_axis(x, p, 1)"
    ),
    _same("boolean index", "x[mask]"),
    Operation("roll", "gp.roll(x, 3, 1)", "torch.roll(x, 3, 1)", "cp.roll(x, 3, 1)"),
    Operation("pad", "gp.pad(x, 1)", "F.pad(x, (1, 1) * x.ndim)", "cp.pad(x, 1)"),
    Operation("repeat", "gp.repeat(x, 2, 0)", "torch.repeat_interleave(x, 2, 0)", "cp.repeat(x, 2, 0)"),
    Operation("diff", "gp.diff(x)", "torch.diff(x)", "cp.diff(x)"),
    Operation("tril", "gp.tril(x)", "torch.tril(x)", "cp.tril(x)"),
    Operation("sort, axis 1", "gp.sort(x, 1)", "torch.sort(x, 1)", "cp.sort(x, 1)", sorts=True),
    Operation("argsort, axis 1", "gp.argsort(x, 1)", "torch.argsort(x, 1)", "cp.argsort(x, 1)", sorts=True),
    Operation("topk 7", "gp.topk(x, 7, 1)", "torch.topk(x, 7, 1)", "", sorts=True),
    Operation("median, axis 1", "gp.median(x, 1)", "torch.median(x, 1)", "cp.median(x, 1)", sorts=True),
)  # fmt: skip


def function(expression: str, names: dict[str, object]) -> Callable[[], object]:
    """The expression as a function of no arguments."""
    call: Callable[[], object] = eval(f"lambda: {expression}", dict(names))
    return call


def elements(layout: Layout) -> int:
    """Of the memory that a layout lies in."""
    rows = prod(layout.shape[:-1])
    return layout.offset + rows * (layout.shape[-1] + layout.margin)
