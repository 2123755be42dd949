"""Adapters (LoRA): products of low rank that are added to a model's own, for the rows whose request names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.ops.elementwise import add, mul
from pygpukit.ops.elementwise.activation import gelu, silu

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.linear.layer import Epilogue, LinearBF16
    from pygpukit.nn.norm import Norm

_numbers = count(1)


class Pair(NamedTuple):
    """The change of a product: up(down(x)). down: (rank, in); up: (out, rank), with the scale."""

    down: LinearBF16
    up: LinearBF16

    def project(self, x: GPUArray, out: GPUArray, start: int | None, norm: Norm | None) -> None:
        """out += up(down(norm(x))). A row's bits do not depend on the other rows."""
        between = native.empty((x.shape[0], self.down.out_features), self.down.weight.dtype)
        self.down.project(x, between, start, norm=norm)
        change = native.empty(out.shape, out.dtype)
        self.up.project(between, change, start)
        add(out, change, out=out)


@dataclass(eq=False)
class Adapter:
    """An adapter of one model: a pair for each product that it changes. salt: keys and values that were computed with
    it are found with it alone, and never with another of the same name."""

    name: str
    pairs: Mapping[LinearBF16, Pair]

    def __post_init__(self) -> None:
        self.salt = sha256(f"{self.name}\0{next(_numbers)}".encode()).digest()

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(linear.weight.nbytes for pair in self.pairs.values() for linear in pair)


class AdapterRows(NamedTuple):
    """Rows first .. end - 1 of a batch, which an adapter is for."""

    first: int
    end: int
    adapter: Adapter


def adapter_rows(spans: Iterable[tuple[int, int, Adapter | None]]) -> tuple[AdapterRows, ...]:
    """Of spans (first, end, adapter) of a batch in order, those that have one; neighbours with the same joined."""
    rows: list[AdapterRows] = []
    for first, end, adapter in spans:
        if adapter is None:
            continue
        if rows and rows[-1].adapter is adapter and rows[-1].end == first:
            rows[-1] = AdapterRows(rows[-1].first, end, adapter)
        else:
            rows.append(AdapterRows(first, end, adapter))
    return tuple(rows)


def adapt(
    adapters: tuple[AdapterRows, ...],
    linear: LinearBF16,
    x: GPUArray,
    out: GPUArray,
    start: int | None,
    norm: Norm | None = None,
    epilogue: Epilogue = "store",
) -> None:
    """Change the rows of out, which hold epilogue(linear(norm(x))), that have an adapter of that product; no others.

    "store" and "add": what the adapter gives is added. Others are computed again with it, since it comes before them.
    """
    for first, end, adapter in adapters:
        pair = adapter.pairs.get(linear)
        if pair is None:
            continue
        rows, result = x[first:end], out[first:end]
        if epilogue in ("store", "add"):
            pair.project(rows, result, start, norm)
            continue
        whole = native.empty((end - first, linear.out_features), linear.weight.dtype)
        linear.project(rows, whole, start, norm=norm)
        pair.project(rows, whole, start, norm)
        if epilogue == "silu":
            half = linear.out_features // 2
            mul(silu(whole[:, :half]), whole[:, half:], out=result)
        else:
            gelu(whole, approximate="tanh" if epilogue == "gelu" else "none", out=result)
