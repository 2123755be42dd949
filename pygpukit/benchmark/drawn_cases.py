"""The shapes of suite `random`: drawn from what models and users have, the same for one seed everywhere.

A case is a call in the words of each library on operands named a, b, c. A third of the extents are multiples of 64, as
models have them, a third are odd, a third are any; all are spread evenly over their logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import exp, log, prod
from random import Random
from typing import Any

MAX_FLOPS = 2e12  # of a case: 3 ms at 700 TFLOP/s
MAX_ELEMENTS = 2**27  # of all operands and the result of a case
HALF = ("bfloat16", "float16")

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A call. shapes: of its operands by name; dtype: theirs, "tf32" for float32 that may be rounded to it.

    gp_weight, torch_weight: what b is replaced by before anything is measured, as models keep their weights.
    """

    family: str
    name: str
    dtype: str
    gp: str
    torch: str
    shapes: Shapes = field(default_factory=dict)
    gp_weight: str = ""
    torch_weight: str = ""

    @property
    def element(self) -> str:
        return "float32" if self.dtype == "tf32" else self.dtype

    @property
    def title(self) -> str:
        """The name of the row: unique among the cases of a seed but by chance."""
        return f"{self.family}: {self.name} {self.dtype}"


def cases(seed: int, count: int, small: bool = False) -> list[Case]:
    """`count` cases of each family; small: of a few thousand elements, for the simulated device.

    A family's first cases do not depend on `count`, nor on the other families.
    """
    return [case for family in FAMILIES for case in _drawn(family, seed, count, small)]


def _drawn(family: str, seed: int, count: int, small: bool) -> Iterator[Case]:
    draw = Draw(Random(f"{family} {seed}"), small)
    seen: set[str] = set()
    while len(seen) < count:
        case = FAMILIES[family](draw)
        elements = sum(prod(shape) for shape in case.shapes.values())
        if case.title not in seen and 0 < elements <= (2**14 if small else MAX_ELEMENTS):
            seen.add(case.title)
            yield case


@dataclass
class Draw:
    """Random extents and choices."""

    random: Random
    small: bool

    def extent(self, low: int, high: int, multiple: int = 64) -> int:
        """From low to high: a multiple, an odd number or any."""
        if self.small:
            low, high, multiple = min(low, 8), min(high, 40), min(multiple, 8)
        value = exp(self.random.uniform(log(low), log(high)))
        kind = self.random.randrange(3)
        if kind == 0:
            return min(max(round(value / multiple), 1) * multiple, max(high // multiple, 1) * multiple)
        return round(value) | 1 if kind == 1 else round(value)

    def of(self, *values: Any) -> Any:
        return self.random.choice(values)


def _product(draw: Draw) -> Case:
    dtype = draw.of(*HALF, *HALF, "tf32", "float32")
    for _ in range(1000):
        batch = draw.of(1, 1, 1, draw.extent(2, 64, 8))
        m, n, k = draw.extent(1, 16384), draw.extent(64, 16384), draw.extent(32, 16384)
        if 2.0 * batch * m * n * k <= MAX_FLOPS / (16 if dtype == "float32" else 1):
            break
    more = ", tf32=True" if dtype == "tf32" else ""
    transposed = draw.of(True, True, False)
    many = () if batch == 1 else (batch,)
    shapes: Shapes = {"a": (*many, m, k), "b": (*many, n, k) if transposed else (*many, k, n)}
    right = "b.mT" if transposed and batch > 1 else "b.T" if transposed else "b"
    name = f"{'' if batch == 1 else f'{batch} x '}{m} x {n} x {k}{' by rows' if transposed else ''}"
    return Case("products", name, dtype, f"gp.matmul(a, {right}{more})", f"torch.matmul(a, {right})", shapes)


def _attention(draw: Draw) -> Case:
    dtype, width = draw.of(*HALF), draw.of(64, 64, 128, 128, 96, 72, 256)
    shared, kv_heads = draw.of(1, 1, 4, 8), draw.of(1, 2, 4, 8) if draw.small else draw.of(2, 4, 8, 8, 12)
    causal = draw.of(True, False)
    for _ in range(1000):
        batch, queries = draw.of(1, 1, 2, 4, 8), draw.extent(64, 16384)
        keys = queries if causal or draw.of(True, False) else draw.extent(32, 16384)
        if 4.0 * batch * shared * kv_heads * queries * keys * width <= MAX_FLOPS:
            break
    heads = shared * kv_heads
    shapes: Shapes = {
        "a": (batch, heads, queries, width),
        "b": (batch, kv_heads, keys, width),
        "c": (batch, kv_heads, keys, width),
    }
    name = f"{'causal' if causal else 'all of'} {queries} by {keys}, {batch} x {heads} / {kv_heads} heads of {width}"
    ours = f"gp.sdpa{'_causal' * causal}(a, b, c)"
    theirs = f"F.scaled_dot_product_attention(a, b, c, is_causal={causal}, enable_gqa={shared > 1})"
    return Case("attention", name, dtype, ours, theirs, shapes)


def _convolution(draw: Draw) -> Case:
    dtype = draw.of(*HALF, *HALF, "tf32")
    for _ in range(1000):
        batch, k, stride = draw.of(1, 8, 32), draw.of(1, 1, 3, 3, 3, 5, 7), draw.of(1, 1, 1, 2)
        size, channels = draw.extent(7, 128, 8), draw.extent(3, 1024, 32)
        depthwise = draw.of(False, False, False, True) and k > 1
        filters = channels if depthwise else draw.extent(8, 1024, 32)
        taps = k * k * (1 if depthwise else channels)
        fits = batch * max(channels, filters) * size * size <= MAX_ELEMENTS // 2
        if fits and 2.0 * batch * filters * taps * (size / stride) ** 2 <= MAX_FLOPS / 4:
            break
    last = draw.of(True, False)
    image, weight = (batch, channels, size, size), (filters, 1 if depthwise else channels, k, k)
    groups = channels if depthwise else 1
    settings = f"stride={stride}, padding={k // 2}, groups={groups}"
    input_shape = (batch, size, size, channels) if last else image
    name = f"{k} x {k}{' depthwise' * depthwise}, {channels} to {filters} of {batch} x {size} x {size}"
    name += f"{', stride 2' * (stride == 2)}, channels {'last' if last else 'first'}"
    tf32 = True if dtype == "tf32" else None
    images = "a.permute(0, 3, 1, 2)" if last else "a"
    return Case(
        "convolutions", name, dtype, f"gp.conv2d(a, b, {settings}, channels_last={last}, tf32={tf32})",
        f"F.conv2d({images}, b, {settings})", {"a": input_shape, "b": weight},
        f"packed(b, tf32={tf32})", "b.to(memory_format=torch.channels_last)" if last else "",
    )  # fmt: skip


def _transform(draw: Draw) -> Case:
    kind, length = draw.of("fft", "fft", "rfft", "fft2"), draw.of(2 ** draw.of(*range(3, 21)), draw.extent(7, 100000))
    if kind == "fft2":
        shape: tuple[int, ...] = (draw.extent(1, 16, 4), draw.extent(16, 2048), draw.extent(16, 2048))
    else:
        shape = (draw.extent(1, max(1, min(4096, 2**24 // length))), length)
    if draw.small:
        shape = (*(min(extent, 12) for extent in shape[:-1]), min(shape[-1], 200))
    dtype = "float32" if kind == "rfft" else "complex64"
    return Case(
        "transforms", f"{kind} of {_label(shape)}", dtype, f"gp.fft.{kind}(a)", f"torch.fft.{kind}(a)", {"a": shape}
    )


def _reduction(draw: Draw) -> Case:
    shape = _any(draw)
    axis = draw.of(*range(len(shape)))
    ours, theirs = draw.of(
        ("gp.sum(a, {})", "torch.sum(a, {})"), ("gp.mean(a, {})", "torch.mean(a, {})"),
        ("gp.max(a, {})", "torch.amax(a, {})"), ("gp.argmax(a, {})", "torch.argmax(a, {})"),
        ("gp.var(a, {})", "torch.var(a, {}, correction=0)"), ("gp.cumsum(a, {})", "torch.cumsum(a, {})"),
        ("gp.softmax(a, {})", "torch.softmax(a, {})"), ("gp.logsumexp(a, {})", "torch.logsumexp(a, {})"),
    )  # fmt: skip
    name = f"{ours[3 : ours.index('(')]} of {_label(shape)}, axis {axis}"
    dtype = draw.of("float32", *HALF)
    return Case("reductions", name, dtype, ours.format(axis), theirs.format(axis), {"a": shape})


def _array(draw: Draw) -> Case:
    shape = _any(draw)
    ours, theirs = draw.of(
        ("a + b", "a + b"), ("a * 2 - b", "a * 2 - b"), ("gp.exp(a)", "torch.exp(a)"), ("gp.gelu(a)", "F.gelu(a)"),
        ("gp.where(a < b, a, b)", "torch.where(a < b, a, b)"), ("gp.maximum(a, b)", "torch.maximum(a, b)"),
        ("a[..., ::2] + 1", "a[..., ::2] + 1"), ("gp.swapaxes(a, 0, -1).clone()", "a.transpose(0, -1).contiguous()"),
        ("a.astype('float64')", "a.double()"), ("gp.concatenate((a, b), -1)", "torch.cat((a, b), -1)"),
        ("gp.flip(a, 0).clone()", "torch.flip(a, (0,))"), ("gp.roll(a, 3, -1)", "torch.roll(a, 3, -1)"),
        ("gp.sort(a)", "torch.sort(a)"), ("a + a[:1]", "a + a[:1]"),
    )  # fmt: skip
    if "sort" in ours and prod(shape) > 2**24:
        ours, theirs = "-a", "-a"
    dtype = draw.of("float32", *HALF)
    return Case("arrays", f"{ours} of {_label(shape)}", dtype, ours, theirs, {"a": shape, "b": shape})


def _any(draw: Draw) -> tuple[int, ...]:
    """A shape of two or three axes, or one long one, of up to 2^25 elements."""
    while True:
        rank = draw.of(1, 2, 2, 2, 3)
        shape = tuple(draw.extent(2 if rank > 1 else 2**15, {1: 2**25, 2: 2**17, 3: 2048}[rank]) for _ in range(rank))
        if 2**15 <= prod(shape) <= 2**25 or draw.small:
            return shape


def _label(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


FAMILIES: dict[str, Callable[[Draw], Case]] = {
    "products": _product,
    "attention": _attention,
    "convolutions": _convolution,
    "transforms": _transform,
    "reductions": _reduction,
    "arrays": _array,
}


def function(expression: str, names: dict[str, Any]) -> Callable[[], Any]:
    """The expression as a function of no arguments."""
    call: Callable[[], Any] = eval(f"lambda: {expression}", dict(names))
    return call
