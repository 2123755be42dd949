"""What test_host_kernels.py runs once for every kind of instructions that the host may compute with."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.models.dequantise import named

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(31)
SIMPLE = ("F32", "F16", "BF16")
SCALES = {"Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "Q6_K": (208,)}  # where a block's float16 numbers stand
SCALES |= {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}


def weight(kind: str, rows: int, columns: int) -> tuple[gp.GPUArray, Array]:
    """Random blocks, and the float32 values that the reader of files makes of them."""
    if kind in SIMPLE:
        values = RNG.standard_normal((rows, columns)).astype(np.float32)
        array = gp.from_numpy(values).astype({"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[kind])
        return array, array.astype("float32").to_numpy()
    block = named(kind)
    raw = RNG.integers(0, 256, (rows * columns // block.elements, block.bytes), dtype=np.uint8)
    for place in SCALES[kind]:  # some too small for a float16 with all its bits
        scale = (RNG.standard_normal((len(raw), 1)) * 10.0 ** RNG.integers(-6, 1, (len(raw), 1))).astype(np.float16)
        raw[:, place : place + 2] = scale.view(np.uint8)
    return gp.from_numpy(raw.reshape(rows, -1)), block.decoded(raw).reshape(rows, columns)


def ordered_sums(x: Array, w: Array) -> Array:
    """x @ w.T by 32 partial sums, added pairwise: the promised order."""
    width = -(-x.shape[1] // 32) * 32
    x, w = (np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in (x, w))
    sums = np.zeros((len(x), len(w), 32), np.float32)
    for k in range(0, width, 32):
        sums += x[:, None, k : k + 32] * w[None, :, k : k + 32]
    return pairwise(sums)


def coded(x: Array) -> tuple[Array, Array]:
    """x as whole numbers and their scales, 32 elements with one: what products with blocks are of."""
    steps = x.reshape(len(x), -1, 32)
    most = np.abs(steps).max(2)
    scale = np.where(most >= 1e-30, most / np.float32(32639), np.float32(0))
    inverse = np.float32(32639) / np.where(most >= 1e-30, most, np.float32(np.inf))
    whole = np.rint(steps * inverse[..., None])
    return whole.astype(np.int64), scale


def block_numbers(kind: str, raw: Array) -> tuple[Array, Array, Array]:
    """Codes (blocks, elements) without a sign, the scales of 16 at a time, and what is added to 32 at a time."""

    def half(place: int) -> Array:
        return np.ascontiguousarray(raw[:, place : place + 2]).view(np.float16).astype(np.float32)

    count = len(raw)
    none = np.zeros((count, 1), np.float32)
    if kind in ("Q4_0", "Q4_1"):
        codes = raw[:, 2:] if kind == "Q4_0" else raw[:, 4:]
        codes = np.concatenate([codes & 15, codes >> 4], 1).astype(np.int64)
        return codes - (8 if kind == "Q4_0" else 0), half(0).repeat(2, 1), none if kind == "Q4_0" else half(2)
    if kind in ("Q5_0", "Q5_1"):
        at = 2 if kind == "Q5_0" else 4
        bits = np.unpackbits(raw[:, at : at + 4], axis=1, bitorder="little").astype(np.int64)
        codes = np.concatenate([raw[:, at + 4 :] & 15, raw[:, at + 4 :] >> 4], 1) + 16 * bits
        return codes - (16 if kind == "Q5_0" else 0), half(0).repeat(2, 1), none if kind == "Q5_0" else half(2)
    if kind == "Q8_0":
        return np.ascontiguousarray(raw[:, 2:]).view(np.int8).astype(np.int64), half(0).repeat(2, 1), none
    if kind == "Q6_K":
        low = raw[:, :128].reshape(count, 2, 1, 64) >> np.array([0, 4], np.uint8)[:, None] & 15
        high = raw[:, 128:192].reshape(count, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
        codes = low.reshape(count, 256).astype(np.int64) + 16 * high.reshape(count, 256)
        scales = np.ascontiguousarray(raw[:, 192:208]).view(np.int8).astype(np.float32)
        return codes - 32, scales * half(208), none
    packed = raw[:, 4:16].astype(np.int64)
    first, last = packed[:, 8:] & 15 | (packed[:, :4] >> 6) << 4, packed[:, 8:] >> 4 | (packed[:, 4:8] >> 6) << 4
    scales = np.concatenate([packed[:, :4] & 63, first], 1).astype(np.float32) * half(0)
    least = np.concatenate([packed[:, 4:8] & 63, last], 1).astype(np.float32) * half(2)
    codes = raw[:, -128:].reshape(count, 4, 1, 32) >> np.array([0, 4], np.uint8)[:, None] & 15
    codes = codes.reshape(count, 256).astype(np.int64)
    if kind == "Q5_K":
        fifths = raw[:, 16:48].reshape(count, 1, 32) >> np.arange(8, dtype=np.uint8)[:, None] & 1
        codes = codes + 16 * fifths.reshape(count, 256)
    return codes, scales.repeat(2, 1), -least


def pairwise(sums: Array) -> Array:
    """The last axis added up, its two halves first."""
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def coded_sums(x: Array, kind: str, raw: Array) -> Array:
    """x @ w.T of whole numbers, added up in fours, scaled, in 16 partial sums: the promised order."""
    whole, scale = coded(x)
    count, steps = scale.shape
    rows = raw.shape[0]
    codes, scales, added = block_numbers(kind, raw.reshape(-1, named(kind).bytes))
    codes, scales = codes.reshape(rows, steps, 8, 4), scales.reshape(rows, steps, 2)
    fours = np.einsum("csij,rsij->crsi", whole.reshape(count, steps, 8, 4), codes).astype(np.float32)
    terms = fours * (scales[None] * scale[:, None, :, None]).repeat(4, 3)
    terms = np.pad(terms, ((0, 0), (0, 0), (0, steps % 2), (0, 0))).reshape(count, rows, -1, 16)
    sums = np.zeros((count, rows, 16), np.float32)
    for pair in range(terms.shape[2]):
        sums += terms[:, :, pair]
    found = pairwise(sums)
    if added.any():
        lanes = 8 if kind.endswith("K") else 2
        shifts = added.reshape(1, rows, steps) * (scale * whole.sum(2).astype(np.float32))[:, None]
        shifts = np.pad(shifts, ((0, 0), (0, 0), (0, -steps % lanes))).reshape(count, rows, -1, lanes)
        sums = np.zeros((count, rows, lanes), np.float32)
        for part in range(shifts.shape[2]):
            sums += shifts[:, :, part]
        found = found + pairwise(sums)
    return found


def products_have_the_promised_bits() -> None:
    for kind in (*SIMPLE, "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        for rows, columns in ((37, 768), (1, 256), (6, 96), (5, 77), (3, 1), (4, 0)):
            if columns % named(kind).elements:
                continue
            array, values = weight(kind, rows, columns)
            for count in (1, 2, 5, 9):
                x = RNG.standard_normal((count, columns)).astype(np.float32)
                out = gp.zeros((count, rows))
                native.host_linear(gp.from_numpy(x), out, [(kind, array)])
                got = out.to_numpy()
                if columns and kind not in SIMPLE:
                    at_once = np.full_like(got, np.nan)
                    native.host_products(x, array.to_numpy(), at_once, kind)
                    assert at_once.tobytes() == got.tobytes(), (kind, rows, columns, count)
                want = ordered_sums(x, values) if kind in SIMPLE else coded_sums(x, kind, array.to_numpy())
                assert got.tobytes() == want.tobytes(), (kind, rows, columns, count)
                exact = x.astype(np.float64) @ values.T.astype(np.float64)
                size = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(values, axis=1)
                assert np.abs(got - exact).max(initial=0) <= 1e-4 * size.max(initial=0), kind
            if columns:
                numbers, found = gp.from_numpy(np.arange(rows, dtype=np.int32)[::-1].copy()), gp.zeros((rows, columns))
                native.host_rows(numbers, (kind, array), found)
                assert np.array_equal(found.to_numpy(), values[::-1]), kind


def layers_are_near_float64() -> None:
    for rows in (1, 6):
        for centered in (False, True):
            x = (RNG.standard_normal((rows, 96)) * 3 + 1).astype(np.float32)
            array, values = weight("Q8_0", 58, 96)
            first, second = weight("Q4_1", 20, 96), weight("Q5_0", 38, 96)
            scale, shift = RNG.standard_normal((2, 96)).astype(np.float32)
            bias = RNG.standard_normal(58).astype(np.float32)
            wide = x.astype(np.float64)
            wide -= wide.mean(1, keepdims=True) if centered else 0
            wide = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * scale + shift
            for parts, matrix in (
                ([("Q8_0", array)], values),
                ([("Q4_1", first[0]), ("Q5_0", second[0])], np.concatenate([first[1], second[1]])),
            ):
                norm = (gp.from_numpy(scale), gp.from_numpy(shift), 1e-5, centered)
                given, last = gp.from_numpy(x), gp.from_numpy(bias)
                stored = gp.zeros((rows, 58))
                native.host_linear(given, stored, parts, last, norm, "store")
                sums = stored.to_numpy().astype(np.float64)
                # Codes of x are off by half a 32639th of the largest of 32 at most.
                most = np.abs(wide).reshape(rows, -1, 32).max(2)[:, None] / 65278
                bound = (most * np.abs(matrix).reshape(58, -1, 32).sum(2)).sum(2) + 2e-6 * np.abs(sums).max()
                assert (np.abs(wide @ matrix.T.astype(np.float64) + bias - sums) <= bound).all(), (rows, centered)
                before = RNG.standard_normal((rows, 58)).astype(np.float32)
                gate, up = sums[:, :29], sums[:, 29:]
                tanh = np.tanh(np.sqrt(2 / np.pi) * (sums + 0.044715 * sums**3))
                for after, want in (
                    ("add", sums + before),
                    ("gelu", 0.5 * sums * (1 + tanh)),
                    ("silu", gate * 0.5 * (1 + np.tanh(0.5 * gate)) * up),
                ):
                    out = gp.from_numpy(before[:, : want.shape[1]].copy())
                    native.host_linear(given, out, parts, last, norm, after)
                    error = np.abs(out.to_numpy() - want).max() / np.abs(want).max()
                    assert error < 2e-6, (rows, centered, after, error)


def attention_is_near_float64() -> None:
    heads, kv_heads, capacity, slots = 6, 2, 40, 3
    for dim, window, scale, cap, half in (
        (64, 0, 0.125, 0.0, 32),
        (80, 7, 0.3, 0.0, 40),
        (16, 0, 1.0, 2.0, 8),
        (6, 3, 0.05, 0.0, 3),
        (64, 0, 0.5, 5.0, 24),
        (24, 5, 40.0, 50.0, 1),
    ):
        shape = (slots, kv_heads, capacity, dim)
        k, v = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
        positions, which = np.array([0, 39, 17], np.int32), np.array([2, 0, 1], np.int32)
        qkv = RNG.standard_normal((3, (heads + 2 * kv_heads) * dim)).astype(np.float32)
        angles = RNG.standard_normal((capacity, half))
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        arrays = [gp.from_numpy(a.copy()) for a in (qkv, positions, which, k, v)]
        native.host_place(*arrays, (gp.from_numpy(cos), gp.from_numpy(sin)))
        sinks = RNG.standard_normal(heads).astype(np.float32) * 4 if dim in (80, 24) else None
        out = gp.zeros((3, heads * dim))
        native.host_attention(*arrays, out, scale, window, cap, None if sinks is None else gp.from_numpy(sinks))
        for row, (position, slot) in enumerate(zip(positions, which, strict=True)):
            parts = qkv[row].astype(np.float64).reshape(-1, dim)
            a, b, rest = np.split(parts[: heads + kv_heads], [half, 2 * half], axis=1)
            c, s = cos[position], sin[position]
            turned = np.concatenate([a * c - b * s, b * c + a * s, rest], 1)
            k[slot, :, position], v[slot, :, position] = turned[heads:], parts[heads + kv_heads :]
            low = max(0, position + 1 - window) if window else 0
            for head in range(heads):
                keys, values = (x[slot, head // 3, low : position + 1].astype(np.float64) for x in (k, v))
                scores = keys @ turned[head] * scale
                scores = cap * np.tanh(scores / cap) if cap else scores
                sink = -np.inf if sinks is None else float(sinks[head])
                largest = max(scores.max(), sink)
                weights = np.exp(scores - largest)
                want = weights @ values / (weights.sum() + np.exp(sink - largest))
                got = out.to_numpy()[row].reshape(heads, dim)[head]
                bound = 3e-6 if cap < 10 else 2e-5  # a score of 50 has no more digits
                assert np.abs(got - want).max() < bound, (dim, window, row, head)
        assert np.allclose(arrays[3].to_numpy(), k, atol=1e-6) and np.allclose(arrays[4].to_numpy(), v, atol=1e-6)


def a_row_out_of_the_cache_is_refused() -> None:
    k = gp.zeros((1, 1, 4, 8))
    native.host_attention(gp.zeros((1, 24)), *_state(3, [[0, 9]]), k, k, gp.zeros((1, 8)), 1.0)  # 9 is behind it
    for position, slot in ((4, 0), (-1, 0), (0, 1), (4, [[0, 1]]), (3, [[-1, 0]]), (8, [[0, 0]])):
        state = _state(position, slot)
        try:
            native.host_attention(gp.zeros((1, 24)), *state, k, k, gp.zeros((1, 8)), 1.0)
        except InvalidSpecError as error:
            assert "position" in str(error)
        else:
            raise AssertionError((position, slot))


def _state(position: int, slot: object) -> tuple[gp.GPUArray, gp.GPUArray]:
    """Where one row stands: in a slot, or in blocks."""
    slots = np.array(slot, np.int32)
    return gp.from_numpy(np.array([position], np.int32)), gp.from_numpy(slots.reshape(slots.shape or 1))


if __name__ == "__main__":
    gp.zeros(1)
    print(native.host_kernels())
    for check in (
        products_have_the_promised_bits,
        layers_are_near_float64,
        attention_is_near_float64,
        a_row_out_of_the_cache_is_refused,
    ):
        check()
    sys.exit(0)
