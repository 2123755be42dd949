"""The operators that suite `operators` measures: what is called in each library, and the bytes that a call must move.

The expressions see `x`, `y`: vectors of n elements. `m`: the same elements as rows of COLUMNS; `w`, `b`: a vector for
each row. `mask`: n random bools. `narrow`, `wide`: the elements as rows of 128 B and of 4 KiB, `pick_narrow`,
`pick_wide`: the numbers of those rows in random order, int64. An empty expression: the library has no such function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DTYPES = ("float32", "bfloat16")
ITEMSIZE = {"float32": 4, "bfloat16": 2}
NARROW_BYTES = 128
WIDE_BYTES = 4096
INDEX_BYTES = 8  # int64
COLUMNS = 4096
COLUMNS_SIM = 512
COUNT = 64 << 20
COUNT_QUICK = 16 << 20
COUNT_SIM = 256 << 10


@dataclass(frozen=True)
class Size:
    """n elements of `item` bytes, as n / columns rows."""

    n: int
    item: int
    columns: int

    @property
    def nbytes(self) -> int:
        return self.n * self.item


@dataclass(frozen=True)
class Case:
    """One operator. moved: the effective bytes of a call, every input read once and every output written once."""

    name: str
    moved: Callable[[Size], int]
    gp: str
    torch: str
    cupy: str = ""


def _one_in_one_out(s: Size) -> int:
    return 2 * s.nbytes


def _row_parameters(vectors: int) -> Callable[[Size], int]:
    return lambda s: 2 * s.nbytes + vectors * s.columns * s.item


CASES = (
    Case("add", lambda s: 3 * s.nbytes, "gp.add(x, y)", "torch.add(x, y)", "cp.add(x, y)"),
    Case("mul", lambda s: 3 * s.nbytes, "gp.mul(x, y)", "torch.mul(x, y)", "cp.multiply(x, y)"),
    Case("exp", _one_in_one_out, "gp.exp(x)", "torch.exp(x)", "cp.exp(x)"),
    Case("gelu", _one_in_one_out, "gp.gelu(x)", "F.gelu(x)"),
    Case("silu", _one_in_one_out, "gp.silu(x)", "F.silu(x)"),
    Case("rmsnorm", _row_parameters(1), "gp.rmsnorm(m, w)", "F.rms_norm(m, w.shape, w, 1e-5)"),
    Case("layernorm", _row_parameters(2), "gp.layernorm(m, w, b)", "F.layer_norm(m, w.shape, w, b, 1e-5)"),
    Case("softmax", _one_in_one_out, "gp.softmax(m)", "torch.softmax(m, -1)", "special.softmax(m, axis=-1)"),
    Case("transpose", _one_in_one_out, "m.T.contiguous()", "m.T.contiguous()", "cp.ascontiguousarray(m.T)"),
    Case("sum, axis 0", lambda s: s.nbytes + s.columns * s.item, "gp.sum(m, axis=0)", "m.sum(0)", "m.sum(0)"),
    Case("sum, axis 1", lambda s: s.nbytes + s.nbytes // s.columns, "gp.sum(m, axis=1)", "m.sum(1)", "m.sum(1)"),
    Case("sum", lambda s: s.nbytes + s.item, "gp.sum(x)", "x.sum()", "x.sum()"),
    Case("argmax", lambda s: s.nbytes + INDEX_BYTES, "gp.argmax(x)", "x.argmax()", "x.argmax()"),
    Case(
        "where", lambda s: 3 * s.nbytes + s.n, "gp.where(mask, x, y)", "torch.where(mask, x, y)", "cp.where(mask, x, y)"
    ),
    Case("cumsum", _one_in_one_out, "gp.cumsum(x)", "x.cumsum(0)", "cp.cumsum(x)"),
    Case("sort", _one_in_one_out, "gp.sort(x)", "x.sort()", "cp.sort(x)"),
    # Half of the mask is set, on the average.
    Case("boolean index", lambda s: s.nbytes + s.n + s.nbytes // 2, "x[mask]", "x[mask]", "x[mask]"),
    Case(
        "take rows of 128 B",
        lambda s: 2 * s.nbytes + s.nbytes // NARROW_BYTES * INDEX_BYTES,
        "gp.take(narrow, pick_narrow, axis=0)",
        "narrow.index_select(0, pick_narrow)",
        "cp.take(narrow, pick_narrow, axis=0)",
    ),
    Case(
        "take rows of 4 KiB",
        lambda s: 2 * s.nbytes + s.nbytes // WIDE_BYTES * INDEX_BYTES,
        "gp.take(wide, pick_wide, axis=0)",
        "wide.index_select(0, pick_wide)",
        "cp.take(wide, pick_wide, axis=0)",
    ),
)

# Calls on CALL_ELEMENTS float32, by the host's clock: (row, expression, PyTorch's, CuPy's).
CALL_ELEMENTS = 1024
CALLS = (
    ("add(x, y, out=z)", "gp.add(x, y, out=z)", "torch.add(x, y, out=z)", "cp.add(x, y, out=z)"),
    ("add(x, y)", "gp.add(x, y)", "torch.add(x, y)", "cp.add(x, y)"),
)


def function(expression: str, names: dict[str, object]) -> Callable[[], object]:
    """The expression as a function of no arguments."""
    call: Callable[[], object] = eval(f"lambda: {expression}", dict(names))
    return call


def size(dtype: str, backend: str, quick: bool) -> Size:
    """Sizes that are measured: 64Mi elements, 16384 rows of 4096; a quarter with --quick, few when simulated."""
    if backend == "sim":
        return Size(COUNT_SIM, ITEMSIZE[dtype], COLUMNS_SIM)
    return Size(COUNT_QUICK if quick else COUNT, ITEMSIZE[dtype], COLUMNS)
