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
SCALES = {"Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "Q6_K": (208,)}  # where a block's float16 numbers stand
SCALES |= {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}


def weight(kind: str, rows: int, columns: int) -> tuple[gp.GPUArray, Array]:
    """Random blocks, and the float32 values that the reader of files makes of them."""
    if kind in ("F32", "F16", "BF16"):
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
    while sums.shape[2] > 1:
        half = sums.shape[2] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def products_have_the_promised_bits() -> None:
    for kind in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        for rows, columns in ((37, 768), (1, 256), (5, 77), (3, 1), (4, 0)):
            if columns % named(kind).elements:
                continue
            array, values = weight(kind, rows, columns)
            for count in (1, 2, 5, 9):
                x = RNG.standard_normal((count, columns)).astype(np.float32)
                out = gp.zeros((count, rows))
                native.host_linear(gp.from_numpy(x), out, [(kind, array)])
                assert out.to_numpy().tobytes() == ordered_sums(x, values).tobytes(), (kind, rows, columns, count)
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
                sums = wide @ matrix.T.astype(np.float64) + bias
                before = RNG.standard_normal((rows, 58)).astype(np.float32)
                gate, up = sums[:, :29], sums[:, 29:]
                tanh = np.tanh(np.sqrt(2 / np.pi) * (sums + 0.044715 * sums**3))
                for after, want in (
                    ("store", sums),
                    ("add", sums + before),
                    ("gelu", 0.5 * sums * (1 + tanh)),
                    ("silu", gate * 0.5 * (1 + np.tanh(0.5 * gate)) * up),
                ):
                    out = gp.from_numpy(before[:, : want.shape[1]].copy())
                    norm = (gp.from_numpy(scale), gp.from_numpy(shift), 1e-5, centered)
                    native.host_linear(gp.from_numpy(x), out, parts, gp.from_numpy(bias), norm, after)
                    error = np.abs(out.to_numpy() - want).max() / np.abs(want).max()
                    assert error < 2e-6, (rows, centered, after, error)


def attention_is_near_float64() -> None:
    heads, kv_heads, capacity, slots = 6, 2, 40, 3
    for dim, window, scale in ((64, 0, 0.125), (80, 7, 0.3), (16, 0, 1.0), (6, 3, 0.05)):
        shape = (slots, kv_heads, capacity, dim)
        k, v = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
        positions, which = np.array([0, 39, 17], np.int32), np.array([2, 0, 1], np.int32)
        qkv = RNG.standard_normal((3, (heads + 2 * kv_heads) * dim)).astype(np.float32)
        angles = RNG.standard_normal((capacity, dim // 2))
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        arrays = [gp.from_numpy(a.copy()) for a in (qkv, positions, which, k, v)]
        native.host_place(*arrays, (gp.from_numpy(cos), gp.from_numpy(sin)))
        out = gp.zeros((3, heads * dim))
        native.host_attention(*arrays, out, scale, window)
        for row, (position, slot) in enumerate(zip(positions, which, strict=True)):
            parts = qkv[row].astype(np.float64).reshape(-1, dim)
            a, b = parts[: heads + kv_heads, : dim // 2], parts[: heads + kv_heads, dim // 2 :]
            c, s = cos[position], sin[position]
            turned = np.concatenate([a * c - b * s, b * c + a * s], 1)
            k[slot, :, position], v[slot, :, position] = turned[heads:], parts[heads + kv_heads :]
            low = max(0, position + 1 - window) if window else 0
            for head in range(heads):
                keys, values = (x[slot, head // 3, low : position + 1].astype(np.float64) for x in (k, v))
                scores = keys @ turned[head] * scale
                weights = np.exp(scores - scores.max())
                want = weights @ values / weights.sum()
                got = out.to_numpy()[row].reshape(heads, dim)[head]
                assert np.abs(got - want).max() < 3e-6, (dim, window, row, head)
        assert np.allclose(arrays[3].to_numpy(), k, atol=1e-6) and np.allclose(arrays[4].to_numpy(), v, atol=1e-6)


def a_row_out_of_the_cache_is_refused() -> None:
    k = gp.zeros((1, 1, 4, 8))
    for position, slot in ((4, 0), (-1, 0), (0, 1)):
        state = (gp.from_numpy(np.array([number], np.int32)) for number in (position, slot))
        try:
            native.host_attention(gp.zeros((1, 24)), *state, k, k, gp.zeros((1, 8)), 1.0)
        except InvalidSpecError as error:
            assert "position" in str(error)
        else:
            raise AssertionError((position, slot))


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
