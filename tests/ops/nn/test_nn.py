"""Rotary positions, embedding, bias and LSTM against plain float64 references, on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rounded import agree, normal, to_float64

import pygpukit as gp
from pygpukit import ops
from pygpukit._core import native

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]


# ---- rotary positions ----


def rotated(x: Values, frequencies: Values, first: int, layout: str) -> Values:
    """Each pair as a complex number, turned by position times frequency; x (positions, heads, D)."""
    half = x.shape[-1] // 2
    a, b = (x[..., :half], x[..., half:]) if layout == "neox" else (x[..., ::2], x[..., 1::2])
    angles = np.arange(first, first + x.shape[-3])[:, None, None] * frequencies
    turned = (a + 1j * b) * np.exp(1j * angles)
    if layout == "neox":
        return np.concatenate([turned.real, turned.imag], axis=-1)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


@pytest.mark.parametrize("layout", ["neox", "gptj"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rope_rotates_pairs(layout: str, dtype: str) -> None:
    cos, sin = gp.rope_init_linear(50, 22, layout=layout)
    frequencies = 10000.0 ** (-np.arange(11) / 11)
    (q, a), (k, b) = normal(dtype, 7, 5, 22), normal(dtype, 7, 2, 22)
    assert gp.rope_inplace(q, k, cos[40:47], sin[40:47], layout=layout) is None
    agree(q, rotated(a, frequencies, 40, layout))
    agree(k, rotated(b, frequencies, 40, layout))
    half = (gp.from_numpy(f(np.outer(np.arange(3), frequencies)).astype(np.float32)) for f in (np.cos, np.sin))
    (q, a), (k, b) = normal(dtype, 2, 3, 1, 22), normal(dtype, 2, 3, 3, 22)
    gp.rope_inplace(q, k, *half, layout=layout)
    agree(q, rotated(a, frequencies, 0, layout))
    agree(k, rotated(b, frequencies, 0, layout))


def test_rope_turns_views_where_they_lie() -> None:
    cos, sin = gp.rope_init_linear(6, 8)
    frequencies = 10000.0 ** (-np.arange(4) / 4)
    qkv, values = normal("float32", 6, 3 * 12 + 12 + 5)
    q, k = qkv[:, :36].reshape(6, 3, 12), qkv[:, 36:48].reshape(6, 1, 12)
    gp.rope_inplace(q[..., :8], k[..., 4:], cos, sin)
    expected = values.copy()
    expected[:, :36].reshape(6, 3, 12)[..., :8] = rotated(
        values[:, :36].reshape(6, 3, 12)[..., :8], frequencies, 0, "neox"
    )
    expected[:, None, 40:48] = rotated(values[:, None, 40:48], frequencies, 0, "neox")
    agree(qkv, expected)
    empty = gp.zeros((0, 3, 8))
    gp.rope_inplace(empty, empty.clone(), cos[:0], sin[:0])


def test_rope_scores_depend_on_distance_only() -> None:
    cos, sin = (table.astype("float32") for table in gp.rope_init_yarn(100, 16, scale=4.0))
    q, _ = normal("float32", 1, 1, 16)
    k, _ = normal("float32", 1, 1, 16)
    scores = []
    for shift in (0, 13, 60):
        a, b = q.clone(), k.clone()
        gp.rope_inplace(a, gp.zeros((1, 1, 16)), cos[5 + shift : 6 + shift], sin[5 + shift : 6 + shift])
        gp.rope_inplace(gp.zeros((1, 1, 16)), b, cos[shift : shift + 1], sin[shift : shift + 1])
        scores.append(float((a.reshape(16) @ b.reshape(16)).item()))
    np.testing.assert_allclose(scores, scores[0], rtol=1e-4, atol=1e-4)


def test_rope_tables() -> None:
    plain = 10000.0 ** (-np.arange(0, 64, 2) / 64)
    positions = np.arange(300)
    wavelength = 2 * np.pi / plain

    def table(frequencies: Values, factor: float = 1.0) -> Values:
        return factor * np.cos(np.outer(positions, np.concatenate([frequencies, frequencies])))

    def check(found: tuple[gp.GPUArray, gp.GPUArray], frequencies: Values, factor: float = 1.0) -> None:
        assert found[0].dtype == "float32"
        np.testing.assert_allclose(found[0].to_numpy(), table(frequencies, factor), atol=1e-7)
        np.testing.assert_allclose(
            found[1].to_numpy()[:, :32], factor * np.sin(np.outer(positions, frequencies)), atol=1e-7
        )

    check(gp.rope_init_linear(300, 64, 10000.0, 4.0), plain / 4)
    ntk = (10000.0 * 4 ** (64 / 62)) ** (-np.arange(0, 64, 2) / 64)
    np.testing.assert_allclose([ntk[0], ntk[-1]], [plain[0], plain[-1] / 4])
    check(gp.rope_init_ntk_aware(300, 64, 10000.0, 4.0), ntk)
    # Llama 3.1: long waves are stretched, short ones kept, those between are mixed.
    llama = []
    for wave, frequency in zip(wavelength, plain, strict=True):
        smooth = (8192 / wave - 1) / (4 - 1)
        if wave < 8192 / 4:
            llama.append(frequency)
        elif wave > 8192 / 1:
            llama.append(frequency / 8)
        else:
            llama.append((1 - smooth) * frequency / 8 + smooth * frequency)
    check(gp.rope_init_llama3(300, 64, 10000.0), np.array(llama))
    # YaRN: the pair that turns n times within 4096 positions is 64 ln(4096 / 2 pi n) / (2 ln base).
    low, high = (64 * np.log(4096 / (2 * np.pi * turns)) / (2 * np.log(10000)) for turns in (32, 1))
    ramp = np.clip((np.arange(32) - np.floor(low)) / (np.ceil(high) - np.floor(low)), 0, 1)
    check(gp.rope_init_yarn(300, 64, scale=8.0), plain * (1 - ramp) + plain / 8 * ramp, 0.1 * np.log(8) + 1)
    between = np.clip((np.arange(32) - low) / (high - low), 0, 1)
    whole = gp.rope_init_yarn(300, 64, scale=8.0, truncate=False)
    check(whole, plain * (1 - between) + plain / 8 * between, 0.1 * np.log(8) + 1)
    assert ramp[0] == 0, "fast pairs are kept"
    assert ramp[-1] == 1, "slow pairs are interpolated"
    neox, gptj = gp.rope_init_linear(9, 6)[0].to_numpy(), gp.rope_init_linear(9, 6, layout="gptj")[0].to_numpy()
    np.testing.assert_array_equal(neox[:, [0, 3, 1, 4, 2, 5]], gptj)


def test_rope_refusals() -> None:
    cos, sin = gp.rope_init_linear(4, 8)
    q, k = gp.zeros((4, 2, 8)), gp.zeros((4, 1, 8))
    with pytest.raises(gp.ShapeError, match="slice the tables"):
        gp.rope_inplace(q, k, cos[:3], sin[:3])
    with pytest.raises(gp.ShapeError, match="D even"):
        gp.rope_inplace(q[..., :7], k[..., :7], cos, sin)
    with pytest.raises(gp.DTypeError, match="float64"):
        gp.rope_inplace(q.astype("float64"), k.astype("float64"), cos, sin)
    with pytest.raises(gp.ShapeError, match="share memory"):
        gp.rope_inplace(q, q, cos, sin)
    with pytest.raises(gp.ShapeError, match="share memory"):
        gp.rope_inplace(q, q[:, :1], cos, sin)
    repeated = native.view(q, (4, 2, 8), (0, *q.strides[1:]), 0)
    with pytest.raises(gp.ShapeError, match="broadcast view"):
        gp.rope_inplace(repeated, k, cos, sin)
    with pytest.raises(gp.InvalidSpecError, match="'neox' or 'gptj'"):
        gp.rope_inplace(q, k, cos, sin, layout="half")
    with pytest.raises(gp.DTypeError, match="must be float32"):
        ops.rope_inplace_f32table(q, k, cos.astype("float16"), sin)
    with pytest.raises(gp.ShapeError, match="head_dim must be even"):
        gp.rope_init_linear(4, 7)
    with pytest.raises(gp.InvalidSpecError, match="scale is 0"):
        gp.rope_init_linear(4, 8, scale=0)


# ---- embedding ----


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float64", "complex128", "float8_e4m3"])
@pytest.mark.parametrize("width", [1, 7, 16])
def test_embedding_moves_rows(dtype: str, width: int) -> None:
    bits = np.random.default_rng().integers(0, 100, (9, width * gp.empty((), dtype).itemsize), np.uint8)
    host = {"bfloat16": "uint16", "float8_e4m3": "uint8"}.get(dtype, dtype)
    values = bits.view(host) if dtype != "complex128" else bits.astype(np.float64)[:, :width] * (1 + 2j)
    table = gp.from_numpy(values) if host == dtype else gp.from_numpy(values).view(dtype)
    ids = np.array([[3, 0, 8], [8, 8, 1]])
    for index in ("int32", "int64"):
        found = gp.embedding(table, gp.from_numpy(ids.astype(index)))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.to_numpy(), values[ids])
    found = gp.embedding(table[::-2, ::3], gp.from_numpy(ids // 2)[:, ::-1])
    np.testing.assert_array_equal(found.to_numpy(), values[::-2, ::3][ids[:, ::-1] // 2])


@pytest.mark.parametrize("bad", [3, -1, 2**40, -(2**62)])
def test_embedding_out_of_range_raises_by_the_next_wait(bad: int) -> None:
    table, values = normal("float32", 5, 4)
    with pytest.raises(IndexError, match=f"index {bad} is out of range for axis 0 with size 3"):
        gp.embedding(table[1:4], gp.from_numpy(np.array([0, bad, 2]))).to_numpy()
    with pytest.raises(IndexError, match="index 0 is out of range for axis 0 with size 0"):
        gp.embedding(table[:0], gp.zeros(2, "int32")).to_numpy()
    gp.synchronize()  # an error is told once
    np.testing.assert_array_equal(gp.embedding(table[1:4], gp.zeros(1, "int32")).to_numpy(), values[1:2])


def test_embedding_shapes_and_outputs() -> None:
    table, values = normal("float32", 6, 3)
    ids = gp.from_numpy(np.array([4, 1], np.int32))
    assert gp.embedding(table, ids[0]).shape == (3,)
    assert gp.embedding(table, ids[:0]).shape == (0, 3)
    assert gp.embedding(table[:, :0], ids).shape == (2, 0)
    out = gp.zeros((2, 6))
    assert gp.embedding(table, ids, out=out[:, ::2]).block == out.block
    np.testing.assert_array_equal(out.to_numpy()[:, ::2], values[[4, 1]])
    rows = gp.zeros((3, 3))
    ops.embedding_lookup_batch(table, rows, ids, 2)
    np.testing.assert_array_equal(rows.to_numpy(), np.vstack([values[[4, 1]], np.zeros((1, 3))]))
    ops.embedding_lookup_ptr(table, rows[2:], ids[1:])
    ops.embedding_lookup(table, rows[:1], 5)
    np.testing.assert_array_equal(rows.to_numpy(), values[[5, 1, 1]])


def test_embedding_refusals() -> None:
    table = gp.zeros((6, 3))
    with pytest.raises(gp.DTypeError, match="ids are float32"):
        gp.embedding(table, gp.zeros(2))
    with pytest.raises(gp.ShapeError, match=r"must be \(rows, D\)"):
        gp.embedding(table[0], gp.zeros(2, "int32"))
    with pytest.raises(gp.ShapeError, match="outside the table's 6 rows"):
        ops.embedding_lookup(table, gp.zeros((1, 3)), 6)
    with pytest.raises(gp.DTypeError, match="out is float16"):
        gp.embedding(table, gp.zeros(2, "int32"), out=gp.zeros((2, 3), "float16"))
    with pytest.raises(gp.ShapeError, match="does not hold 3 ids"):
        ops.embedding_lookup_batch(table, gp.zeros((3, 3)), gp.zeros(2, "int32"), 3)


# ---- bias ----


def gelu(x: Values) -> Values:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_bias(dtype: str) -> None:
    (x, a), (w, b), (bias, c) = normal(dtype, 3, 5, 33), normal(dtype, 17, 33), normal(dtype, 17)
    found = gp.linear_bias_gelu(x, w, bias)
    assert found.dtype == dtype
    agree(found, gelu(a @ b.T + c), scale=4)
    agree(
        gp.linear_bias_gelu(x[:, ::-2, ::3], w[::2, ::3], bias[::2]), gelu(a[:, ::-2, ::3] @ b[::2, ::3].T + c[::2]), 4
    )
    assert gp.linear_bias_gelu(x[:0], w, bias).shape == (0, 5, 17)
    y, d = normal(dtype, 4, 17)
    assert gp.bias_add_inplace(y, bias) is None
    agree(y, d + c)
    assert not np.isfinite(to_float64(gp.linear_bias_gelu(gp.full((1, 2), float("nan"), dtype), w[:, :2], bias))).any()


def test_bias_refusals() -> None:
    with pytest.raises(gp.ShapeError, match=r"bias_add_inplace: output has shape \(2, 3\)"):
        gp.bias_add_inplace(gp.zeros((2, 3)), gp.zeros(2))
    with pytest.raises(gp.ShapeError, match=r"\(out, in\)"):
        gp.linear_bias_gelu(gp.zeros((2, 3)), gp.zeros((3, 4)), gp.zeros(4))
    with pytest.raises(gp.DTypeError, match="one float type"):
        gp.linear_bias_gelu(gp.zeros((2, 3)), gp.zeros((4, 3), "float16"), gp.zeros(4))


# ---- LSTM ----


def lstm(x: Values, w: list[Values], h: Values, c: Values, reverse: bool) -> tuple[Values, Values, Values]:
    out = np.zeros((*x.shape[:2], h.shape[1]))
    for step in range(x.shape[1])[:: -1 if reverse else 1]:
        i, f, g, o = np.split(x[:, step] @ w[0].T + h @ w[1].T + w[2] + w[3], 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out[:, step] = h
    return out, h, c


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_lstm(dtype: str) -> None:
    batch, steps, inputs, hidden = 3, 4, 5, 6
    shapes = [(4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)]
    x, a = normal(dtype, batch, steps, inputs)
    forward, backward = ([normal(dtype, *shape) for shape in shapes] for _ in range(2))
    (h0, h), (c0, c) = normal(dtype, batch, hidden), normal(dtype, batch, hidden)
    for reverse in (False, True):
        found = gp.lstm_forward(x, *(w for w, _ in forward), h0=h0, c0=c0, reverse=reverse)
        for one, expected in zip(found, lstm(a, [w for _, w in forward], h, c, reverse), strict=True):
            assert one.dtype == dtype
            agree(one, expected, scale=3)
    zero = np.zeros((batch, hidden))
    expected = [
        lstm(a, [w for _, w in weights], zero, zero, way) for weights, way in ((forward, False), (backward, True))
    ]
    out, h1, c1 = gp.lstm_bidirectional(x, *(w for w, _ in forward), *(w for w, _ in backward))
    agree(out, np.concatenate([expected[0][0], expected[1][0]], axis=2), scale=3)
    agree(h1, np.stack([expected[0][1], expected[1][1]]), scale=3)
    agree(c1, np.stack([expected[0][2], expected[1][2]]), scale=3)


def test_lstm_of_products_in_parts_has_the_bits_of_the_whole() -> None:
    x, a = normal("float32", 2, 12, 5)
    weights = [normal("float32", *shape) for shape in ((12, 3), (12,), (12,))]
    gates = x.transpose(0, 2, 1)  # strided
    out, h, c = gp.lstm_forward(gates, None, *(w for w, _ in weights))
    zero, one = np.zeros((2, 3)), np.eye(12)
    for found, expected in zip(
        (out, h, c), lstm(a.transpose(0, 2, 1), [one, *(w for _, w in weights)], zero, zero, False), strict=True
    ):
        agree(found, expected, scale=3)
    first, h1, c1 = gp.lstm_forward(gates[:, :2], None, *(w for w, _ in weights))
    rest, h2, c2 = gp.lstm_forward(gates[:, 2:], None, *(w for w, _ in weights), h0=h1, c0=c1)
    assert np.array_equal(np.concatenate([first.to_numpy(), rest.to_numpy()], axis=1), out.to_numpy())
    assert np.array_equal(h2.to_numpy(), h.to_numpy()) and np.array_equal(c2.to_numpy(), c.to_numpy())
    with pytest.raises(gp.ShapeError, match=r"must be \(B, S, 12\) where W_ih is None"):
        gp.lstm_forward(gp.zeros((2, 1, 5)), None, *(w for w, _ in weights))


def test_lstm_edges_and_refusals() -> None:
    weights = [gp.zeros((8, 3)), gp.zeros((8, 2)), gp.zeros(8), gp.zeros(8)]
    h0 = gp.ones((2, 2))
    out, h, _ = gp.lstm_forward(gp.zeros((2, 0, 3)), *weights, h0=h0)
    assert out.shape == (2, 0, 2)
    assert h.to_numpy().tolist() == [[1, 1], [1, 1]]
    assert gp.lstm_forward(gp.zeros((0, 4, 3)), *weights)[0].shape == (0, 4, 2)
    assert h0.to_numpy().tolist() == [[1, 1], [1, 1]]
    with pytest.raises(gp.ShapeError, match=r"W_ih has shape \(8, 3\), must be \(8, 4\)"):
        gp.lstm_forward(gp.zeros((2, 1, 4)), *weights)
    with pytest.raises(gp.DTypeError, match="x float16"):
        gp.lstm_forward(gp.zeros((2, 1, 3), "float16"), *weights)
    with pytest.raises(gp.ShapeError, match="h0"):
        gp.lstm_forward(gp.zeros((3, 1, 3)), *weights, h0=h0)
