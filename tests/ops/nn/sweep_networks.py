"""The kernels of neural networks, random numbers and measuring, by their source."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.asr.choice import SOURCE as CHOICE
from pygpukit.asr.choice import Chooser
from pygpukit.asr.rules import Rules
from pygpukit.core import sharing
from pygpukit.kernels import measure
from pygpukit.ops.nn import attention, rope, sampling
from pygpukit.ops.nn.attention import decode
from pygpukit.ops.nn.conv import depthwise, few_channels, gathered, padded, rounded, simt, simt_transposed, small_groups
from pygpukit.ops.nn.conv.layout import by_group
from pygpukit.ops.nn.conv.settings import Settings, new_result
from pygpukit.ops.nn.embedding import SOURCE as EMBEDDING
from pygpukit.ops.nn.lstm import launch
from pygpukit.ops.nn.snake import SOURCE as SNAKE
from pygpukit.ops.nn.spans import Spans
from pygpukit.ops.random import fill
from pygpukit.random import Generator
from pygpukit.tts.layers import adapt, fourier, merge, source, style_last
from pygpukit.tts.layers.adapt import Activation
from pygpukit.tts.layers.fourier import ShortFourier
from pygpukit.tts.layers.source import HarmonicSource
from pygpukit.tts.parts import Part

Values = np.ndarray[Any, Any]
_FLOATS = [dtype.name for dtype in promotion.FLOATS]
_NO_DOUBLE = ("float32", "float16", "bfloat16")


def _attention() -> Iterator[Call]:
    for dtype in _NO_DOUBLE:
        for dim in (40, 101, 200):
            q, k, v = (
                numbers(dtype, 4, 35, dim),
                numbers(dtype, 41, 2, dim).transpose(1, 0, 2),
                numbers(dtype, 2, 41, dim),
            )
            yield Call(gp.sdpa_causal, (q[:, ::-1], k, v), _attended)
            mask, sinks = numbers("float32", 35, 41), numbers("float32", 4)
            yield Call(_with_extras, (q[:, ::-1], k, v, mask, sinks), _attended)


def _decoding() -> Iterator[Call]:
    for dtype in _NO_DOUBLE:
        for dim, queries in product((40, 128, 200, 37, 101, 199), (2, 3)):  # rows of whole 16 bytes, and others
            q = numbers(dtype, 2, 4, queries, dim)  # as four rows of a head of keys, or six
            k, v = numbers(dtype, 2, 2, 300, dim), numbers(dtype, 2, 2, 300, dim)
            lengths = gp.from_numpy(np.array([290, 40], np.int32))
            yield Call(lambda q, k, v, n=lengths: gp.sdpa_decode(q, k, v, n), (q, k, v), _decoded)


def _decoded(q: Values, k: Values, v: Values) -> Values:
    own = [_attended(q[b], k[b, :, :length], v[b, :, :length]) for b, length in enumerate((290, 40))]
    return np.stack(own)


def _with_extras(q: gp.GPUArray, k: gp.GPUArray, v: gp.GPUArray, mask: gp.GPUArray, sinks: gp.GPUArray) -> gp.GPUArray:
    return gp.sdpa_causal(q, k, v, window=20, soft_cap=2.0, mask=mask, sinks=sinks)


def _attended(q: Values, k: Values, v: Values, mask: Values | None = None, sinks: Values | None = None) -> Values:
    """mask and sinks: with the window and the cap of _with_extras()."""
    k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    apart = np.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1] - np.arange(k.shape[1])
    seen, more = apart >= 0, np.zeros((len(q), 1, 1))
    if mask is not None and sinks is not None:
        scores, seen, more = 2 * np.tanh(scores / 2) + mask, seen & (apart < 20), np.exp(sinks)[:, None, None]
    weights = np.exp(scores) * seen
    return weights @ v / (weights.sum(-1, keepdims=True) + more)


def _rotations() -> Iterator[Call]:
    for dtype in _NO_DOUBLE:
        q, k, angles = numbers(dtype, 2, 7, 3, 12), numbers(dtype, 2, 7, 1, 12), numbers("float32", 7, 6)
        for layout in rope.LAYOUTS:

            def rotate(q: gp.GPUArray, k: gp.GPUArray, angles: gp.GPUArray, layout: str = layout) -> list[gp.GPUArray]:
                q, k = q.clone(), k.clone()
                gp.rope_inplace(q, k, gp.cos(angles), gp.sin(angles), layout=layout)
                return [q, k]

            def reference(q: Values, k: Values, angles: Values, layout: str = layout) -> tuple[Values, ...]:
                return tuple(_rotated(x, angles, layout) for x in (q, k))

            yield Call(rotate, (q, k, angles), reference)


def _rotated(x: Values, angles: Values, layout: str) -> Values:
    pairs = np.s_[..., : x.shape[-1] // 2], np.s_[..., x.shape[-1] // 2 :]
    first, second = pairs if layout == "neox" else (np.s_[..., ::2], np.s_[..., 1::2])
    turned = (x[first] + 1j * x[second]) * np.exp(1j * angles)[:, None]
    result = np.empty_like(x)
    result[first], result[second] = turned.real, turned.imag
    return result


def _convolutions() -> Iterator[Call]:
    settings: dict[str, Any] = {"stride": (1, 2), "padding": (2, 0), "dilation": (2, 1), "groups": 3}
    for dtype in _FLOATS:
        x, w, b = numbers(dtype, 2, 6, 9, 11), numbers(dtype, 27, 2, 3, 2), numbers(dtype, 27)
        yield Call(lambda x, w, b: gp.conv2d(x[:, :, ::-1, ::2], w, b, **settings), (x, w, b))
        yield Call(lambda x, w: gp.conv1d(x[:, :, 0], w[:12, :, 0], padding=1, groups=3), (x, w))
        last = numbers(dtype, 2, 7, 5, 4)
        depthwise = numbers(dtype, 4, 1, 3, 3)
        yield Call(lambda x, w: gp.conv2d(x, w, groups=4, act="tanh", channels_last=True), (last, depthwise))
        many, rest = numbers(dtype, 146, 3, 2, 3), numbers(dtype, 146)
        yield Call(lambda x, w, b: gp.conv2d(x[..., ::-1], w, b, (2, 1), (1, 2), groups=2), (x, many, rest))


def _depthwise() -> Iterator[Call]:
    for dtype, (taps, stride) in product(_FLOATS, ((4, 2), (3, 1), (3, 2), (5, 1))):
        given: dict[str, Any] = {"groups": 8, "stride": (1, stride), "padding": (1, 2), "act": "silu"}
        last, w, b = numbers(dtype, 2, 5, 9, 8), numbers(dtype, 8, 1, 2, taps), numbers(dtype, 8)
        yield Call(partial(gp.conv2d, **given, channels_last=True), (last, w, b))
        yield Call(partial(gp.conv2d, **given), (last.transpose(0, 3, 1, 2), w, b))


def _by_few(x: gp.GPUArray, w: gp.GPUArray, b: gp.GPUArray, module: Any = few_channels) -> gp.GPUArray:
    """Two groups with channels last, by a module's kernel. float64: the reference."""
    if x.dtype == "float64":
        return gp.conv2d(x, w, b, padding=(1, 0), groups=2, act="silu", channels_last=True)
    own = Settings(2, (1, 1), (1, 0), (1, 1), (x.shape[1], x.shape[2] - 1), "silu")
    result, out = new_result(x.shape[0], w.shape[0], own, x.dtype, 2, True)
    module.convolve(x.transpose(0, 3, 1, 2), w, b, out, own, result)
    return result


def _few() -> Iterator[Call]:
    for dtype, filters, channels in product(_NO_DOUBLE, (3, 10, 20, 40), (3, 4)):
        shapes = (1, 3, 4, 2 * channels), (2 * filters, channels, 3, 2), (2 * filters,)
        x, w, b = (numbers("bfloat16", *shape).astype(dtype) for shape in shapes)  # which tf32 holds
        yield Call(_by_few, (x, w, b))


def _small_groups() -> Iterator[Call]:
    for dtype, (filters, channels) in product(_NO_DOUBLE, ((4, 4), (12, 8), (24, 12))):
        shapes = (2, 5, 7, 2 * channels), (2 * filters, channels, 3, 2), (2 * filters,)
        x, w, b = (numbers("bfloat16", *shape).astype(dtype) for shape in shapes)  # which tf32 holds
        yield Call(partial(_by_few, module=small_groups), (x, w, b))


def _gathered() -> Iterator[Call]:
    """Two groups with channels last, by each block; more steps than shared memory holds. float64: the reference."""
    given: dict[str, Any] = {"stride": (2, 1), "padding": (1, 2), "act": "relu", "groups": 2}

    def convolve(x: gp.GPUArray, w: gp.GPUArray, b: gp.GPUArray, one: gathered.Block) -> gp.GPUArray:
        if x.dtype == "float64":
            return gp.conv2d(x, w, b, **given, channels_last=True)
        own = Settings(2, (2, 1), (1, 2), (1, 1), ((x.shape[1] - 1) // 2 + 1, x.shape[2] + 2), "relu")
        result, out = new_result(x.shape[0], w.shape[0], own, x.dtype, 2, True)
        weight = by_group(w.transpose(0, 2, 3, 1).clone().transpose(0, 3, 1, 2), 2, False)
        gathered.convolve(x.transpose(0, 3, 1, 2), weight, b, out, result, own, one)
        return result

    for dtype, one in ((name, one) for name, every in gathered.RULE.items() for one in every):
        channels = 36 if dtype == "float32" else 72
        shapes = (2, 5, 13, 2 * channels), (2 * 72, channels, 3, 3), (2 * 72,)
        x, w, b = (numbers("bfloat16", *shape).astype(dtype) for shape in shapes)  # which tf32 holds
        yield Call(partial(convolve, one=one), (x, w, b))


def _roundings() -> Iterator[Call]:
    yield Call(rounded.rounded, (numbers("bfloat16", 3, 5, 100).astype("float32"),), lambda x: x)  # which tf32 holds


def _paddings() -> Iterator[Call]:
    for dtype in ("float16", "float32"):
        last, first = numbers(dtype, 2, 3, 5, 32), numbers(dtype, 2, 70, 3, 29)
        yield Call(
            lambda x: padded.padded(x.transpose(0, 3, 1, 2), 2, (1, 0), (2, 3)).clone(),
            (last,),
            lambda x: np.pad(x.transpose(0, 3, 1, 2), [(0, 0), (0, 0), (1, 2), (0, 3)]),
        )
        yield Call(
            lambda x: padded.padded(x, 1, (1, 0), (2, 3)).clone(),
            (first,),
            lambda x: np.pad(x, [(0, 0), (0, 2), (1, 2), (0, 3)]),
        )


def _transposed() -> Iterator[Call]:
    settings: dict[str, Any] = {"stride": 3, "padding": 2, "output_padding": 1, "dilation": 2, "groups": 2}
    for dtype in _FLOATS:
        x, w, b = numbers(dtype, 2, 6, 11), numbers(dtype, 6, 9, 4), numbers(dtype, 18)
        yield Call(lambda x, w, b: gp.conv_transpose1d(x[:, :, ::-1], w, b, **settings), (x, w, b))
        yield Call(lambda x, w: gp.conv_transpose1d(x, w[:, ::2]), (x, w))
        image, filters = numbers(dtype, 2, 5, 7, 4), numbers(dtype, 4, 3, 3, 2)
        yield Call(
            lambda x, w: gp.conv_transpose2d(x, w, stride=(2, 3), act="tanh", channels_last=True), (image, filters)
        )


def _snakes() -> Iterator[Call]:
    for dtype in _FLOATS:
        x, alpha = numbers(dtype, 2, 7, 41), numbers(dtype, 7, low=0.5, high=2)
        yield Call(lambda x, a: gp.snake(x[:, :, ::2], a), (x, alpha), lambda x, a: _snaked(x[:, :, ::2], a[:, None]))


def _snaked(x: Values, a: Values) -> Values:
    return x + np.sin(a * x) ** 2 / a


def _voices() -> Iterator[Call]:
    pitch = np.random.default_rng().uniform(80, 300, 9).astype(np.float32)
    pitch[2:4] = 5  # no voice there
    weights = {"l_linear.weight": numbers("float32", 1, 9), "l_linear.bias": numbers("float32", 1)}
    spans = Spans([(0, 4), (5, 3)], 9)
    for seeds in ((None, None), (3, 7), (None, 2**64 - 1)):

        def source(pitch: gp.GPUArray, seeds: tuple[int | None, ...] = seeds) -> gp.GPUArray:
            return HarmonicSource(Part(weights), 24000, 300)(pitch.astype("float32"), seeds, spans)

        yield Call(source, (gp.from_numpy(pitch),), widened=False)


def _vocoders() -> Iterator[Call]:
    transform = ShortFourier(20, 5)
    samples, frames = Spans([(0, 35), (40, 700)], 745), Spans([(0, 8), (9, 141)], 150)
    apart = Spans([(0, 35), (35, 700)], 735)

    def magnitudes(signal: gp.GPUArray) -> gp.GPUArray:
        return transform.forward(signal, samples, frames)[:, :11]

    yield Call(magnitudes, (numbers("float64", 745),), widened=False)
    yield Call(lambda x: transform.inverse(x, frames, apart), (numbers("float32", 1, 22, 150),), widened=False)


def _merges() -> Iterator[Call]:
    spans = Spans([(1, 4), (7, 30)], 41)
    for channels, count in product((8, 3), (1, 3, 6)):
        arrays = tuple(numbers("float32", 1, 41, channels).transpose(0, 2, 1) for _ in range(count))

        def merged(*given: gp.GPUArray) -> list[gp.GPUArray]:
            return [merge.merge(given, 0.5, 0.1, spans, dtype) for dtype in (gp.float32, gp.float16)]

        yield Call(merged, arrays, widened=False)


def _dense_styles() -> Iterator[Call]:
    spans = Spans([(1, 4), (7, 300)], 311)
    for channels, kind in product((8, 3), ("float32", "float16")):

        def adapted(
            x: gp.GPUArray, more: gp.GPUArray, scale: gp.GPUArray, shift: gp.GPUArray, channels: int = channels
        ) -> list[gp.GPUArray]:
            alpha = gp.full((channels,), 0.7, "float32")
            acts = Activation(), Activation(slope=0.2), Activation(alpha=alpha)
            given = product(acts, (None, more), (gp.float32, gp.float16))
            return [
                adapt.adapt(x, scale, shift, 1e-5, other=other, plus_one=True, act=act, spans=spans, dtype=dtype)[0]
                for act, other, dtype in given
            ]

        x, more = (numbers(k, 1, 311, channels).transpose(0, 2, 1) for k in (kind, "float32"))
        yield Call(adapted, (x, more, numbers("float32", 2, channels), numbers("float32", 2, channels)), widened=False)


def _choices() -> Iterator[Call]:
    said = [[], [60], [60, 5], [60, 5, 70], [60, 5, 70, 70]]
    for latest in (None, 3):
        chooser = Chooser(Rules(40, 50, (1, 2, 45), (3, 40), latest and 51 + latest), 777)
        x = numbers("float32", 5, 777, low=-9, high=9)
        yield Call(lambda x, c=chooser: c.arrays(x, [4, 0, 2, 3, 1], said), (x,), widened=False)


def _embeddings() -> Iterator[Call]:
    for dtype in ("complex128", "float64", "float32", "int16", "int8"):
        for index_type in ("int32", "int64"):
            ids = gp.from_numpy(np.array([[1, 10, 3], [5, 4, 0]])).astype(index_type)
            yield Call(lambda t, i: [gp.embedding(t, i), gp.embedding(t[:, ::2], i)], (numbers(dtype, 11, 7), ids))


def _lstms() -> Iterator[Call]:
    for dtype in ("float32", "float64"):
        weights = [numbers(dtype, *shape) for shape in ((24, 7), (24, 6), (24,), (24,))]
        yield Call(gp.lstm_forward, (numbers(dtype, 3, 5, 7), *weights))
        yield Call(gp.lstm_bidirectional, (numbers(dtype, 2, 4, 7), *weights, *(w[::-1] for w in weights)))
        yield Call(_step_by_step, (numbers(dtype, 2, 2, 7), *weights))
    wide = [numbers("float32", *shape) for shape in ((520, 3), (520, 130), (520,), (520,))]  # two units a warp
    yield Call(gp.lstm_forward, (numbers("float32", 2, 2, 3), *wide))


def _step_by_step(*given: Any) -> tuple[gp.GPUArray, ...]:
    """float32, too, as where multiprocessors are divided."""
    before, sharing._divided = sharing._divided, True
    try:
        return gp.lstm_forward(*given)
    finally:
        sharing._divided = before


def _styles() -> Iterator[Call]:
    spans = Spans([(1, 4), (7, 30)], 41)
    for slope, snake in ((None, False), (0.2, False), (None, True)):

        def adapted(
            x: gp.GPUArray, scale: gp.GPUArray, shift: gp.GPUArray, slope: float | None = slope, snake: bool = snake
        ) -> list[gp.GPUArray]:
            act = Activation(slope, gp.full((3,), 0.7, "float32") if snake else None)
            return [
                adapt.adapt(x, scale, shift, 1e-5, plus_one=True, act=act, spans=spans)[0],
                adapt.adapt(x[:, :, 3:20], scale[0], shift[0], 1e-5, act=act)[0],
            ]

        given = numbers("float32", 1, 3, 41), numbers("float32", 2, 3), numbers("float32", 2, 3)
        yield Call(adapted, given, widened=False)


def _tokens() -> Iterator[Call]:
    for dtype in _NO_DOUBLE:
        for settings in ({"temperature": 0.0}, {"top_k": 20, "temperature": 0.7}, {"top_p": 0.9, "min_p": 0.1}):
            x = numbers(dtype, 6, 777, low=-9, high=9)
            yield Call(lambda x, s=settings: gp.sample_token(x, seed=3, position=2**40, **s), (x,), widened=False)


def _random() -> Iterator[Call]:
    def both(function: Callable[..., gp.GPUArray], *given: object) -> Call:
        return Call(
            lambda seed: function(Generator(int(seed.item())), *given),
            (gp.from_numpy(np.random.default_rng().integers(0, 2**60, ())),),
        )

    for dtype in _FLOATS:
        yield both(Generator.uniform, -2, 7, (3, 41), dtype)
        yield both(Generator.normal, 0.5, 2, (3, 41), dtype)
    for integer in (*promotion.SIGNED, *promotion.UNSIGNED):
        yield both(Generator.integers, 0, 120, (7, 9), integer)
        for count in (120, 2**40 + 1):  # all types have the kernel, though only one of 64 bits asks for it
            yield both(_wide_integers, integer.name, count)


def _wide_integers(generator: Generator, dtype: str, count: int) -> gp.GPUArray:
    out = gp.empty((7, 9), dtype)
    fill._fill(out, "WideIntegers", 1, generator.seed, 5, (0.0, 0.0), (3, count))
    return out


def _measuring() -> Iterator[Call]:
    words = numbers("uint8", 16 * 4099)

    def launch(kernel: str, grid: int, *args: gp.GPUArray | bytes) -> None:
        kernels.launch(getattr(measure, kernel.upper()), (grid, 1, 1), (256, 1, 1), *args)

    def copied(x: gp.GPUArray) -> gp.GPUArray:
        out = gp.zeros(x.shape, "uint8")
        launch("copy_words", -(-x.size // 16 // 1024), out, x, struct.pack("q", x.size // 16))
        return out

    def untouched(x: gp.GPUArray) -> gp.GPUArray:
        out = x.clone()
        launch("fma_chains", 2, out, struct.pack("f", 0.999), struct.pack("f", 0.001), struct.pack("i", 2))
        launch("read_words", 2, gp.zeros(16 * 1001, "uint8"), struct.pack("q", 1001), out)
        launch("pause", 1, struct.pack("q", 1000))
        return out

    yield Call(copied, (words,), lambda x: x)
    yield Call(untouched, (numbers("float32", 1),), lambda x: x)


_CALLS = {
    attention.simt.SOURCE.source: _attention,
    decode.SOURCE.source: _decoding,
    decode.MMA.source: _decoding,
    rope.SOURCE.source: _rotations,
    simt.SOURCE.source: _convolutions,
    depthwise.SOURCE.source: _depthwise,
    few_channels.SOURCE.source: _few,
    gathered.SOURCE.source: _gathered,
    small_groups.SOURCE.source: _small_groups,
    padded.SOURCE.source: _paddings,
    rounded.SOURCE.source: _roundings,
    simt_transposed.SOURCE.source: _transposed,
    SNAKE.source: _snakes,
    source.SOURCE.source: _voices,
    CHOICE.source: _choices,
    EMBEDDING.source: _embeddings,
    launch.SOURCE.source: _lstms,
    launch.PERSISTENT.source: _lstms,
    adapt.SOURCE.source: _styles,
    style_last.SOURCE.source: _dense_styles,
    merge.SOURCE.source: _merges,
    fourier.SOURCE.source: _vocoders,
    sampling.SOURCE.source: _tokens,
    fill.SOURCE.source: _random,
    measure.COPY_WORDS.source: _measuring,
}


def _family(source: str) -> Family:
    name = source.rpartition("/")[2].removesuffix(".cu")
    return Family(name, (source,), lambda _: "all", lambda _: _CALLS[source]())


FAMILIES = tuple(_family(source) for source in _CALLS)
