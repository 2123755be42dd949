"""The kernels of language models: products with norms, attention over a cache, embeddings, choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.llm.engine import sampling
from pygpukit.nn import embedding
from pygpukit.nn.attention import decode, kv_write, query_growth
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import LayerCache
from pygpukit.nn.linear import layer as linear
from pygpukit.nn.norm import Norm

Function = Callable[..., gp.GPUArray]


def _integers(*values: int) -> gp.GPUArray:
    return gp.from_numpy(np.array(values, np.int32))


def _linears() -> Iterator[Call]:
    for dtype in ("float32", "float16", "bfloat16"):
        for out, epilogue in (
            (dtype, "store"),
            (dtype, "gelu"),
            (dtype, "gelu_erf"),
            (dtype, "silu"),
            ("float32", "store"),
            ("float32", "add"),
        ):
            for rows, first in ((3, None), (2, 0)):
                yield Call(
                    _project(out, epilogue, first, ""), (numbers(dtype, rows, 40), *_weights(dtype)), widened=False
                )
            for kind in ("rmsnorm", "layernorm") if epilogue != "add" else ():
                x = numbers("float32", 2, 40)
                yield Call(_project(out, epilogue, None, kind), (x, *_weights(dtype)), widened=False)


def _rows(stages: int) -> Iterator[Call]:
    """Products of one row, with so many stages of the weight on their way."""
    for dtype in ("float32", "float16", "bfloat16"):
        kinds = [(dtype, epilogue) for epilogue in ("store", "gelu", "gelu_erf", "silu")] + [("float32", "store")]
        for out, epilogue in (*kinds, ("float32", "add")):
            for kind in ("rmsnorm", "layernorm") if epilogue != "add" else ():
                call = _staged(stages, _project(out, epilogue, None, kind))
                yield Call(call, (numbers("float32", 1, 40), *_weights(dtype)), widened=False)
            call = _staged(stages, _project(out, epilogue, None, ""))
            yield Call(call, (numbers(dtype, 1, 40), *_weights(dtype)), widened=False)
    yield from _logits(stages)


def _staged(stages: int, call: Callable[..., Any]) -> Callable[..., Any]:
    def staged(*arrays: gp.GPUArray) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear, "STAGES", (stages,))
            return call(*arrays)

    return staged


def _logits(stages: int) -> Iterator[Call]:
    """Logits and the choice by what their product found."""
    for dtype in ("float32", "float16", "bfloat16"):
        for kind in ("rmsnorm", "layernorm"):

            def choose(x: gp.GPUArray, *weights: gp.GPUArray, kind: str = kind) -> list[gp.GPUArray]:
                weight, bias, scale, shift = weights
                norm = Norm(scale, shift, "layernorm") if kind == "layernorm" else Norm(scale)
                head, sampler = linear.LinearBF16(weight, bias), sampling.Sampler(1, weight.shape[0], False, 0)
                rows, bests = Batch(_integers(0), _integers(5), _integers(0)), head.new_bests()
                sampler.load(0, sampling.Sampling(), [1], [])
                head.project(x, sampler.logits, None, norm=norm, bests=bests)
                sampler.choose(rows, bests)
                return [sampler.logits, rows.positions]

            call = _staged(stages, choose)
            yield Call(call, (numbers("float32", 1, 40), *_weights(dtype)), widened=False)


def _weights(dtype: str) -> tuple[gp.GPUArray, ...]:
    return numbers(dtype, 22, 40), numbers(dtype, 22), numbers(dtype, 40), numbers(dtype, 40)


def _project(out: str, epilogue: str, first: int | None, kind: str) -> Function:
    def project(x: gp.GPUArray, weight: gp.GPUArray, bias: gp.GPUArray, *norm: gp.GPUArray) -> gp.GPUArray:
        result = gp.ones((x.shape[0], 11 if epilogue == "silu" else 22), out)
        before = Norm(norm[0], norm[1], "layernorm") if kind == "layernorm" else Norm(norm[0]) if kind else None
        linear.LinearBF16(weight, bias).project(x, result, first, norm=before, epilogue=epilogue)  # type: ignore[arg-type]
        return result if first is None else result.astype(weight.dtype)  # the product was rounded to that

    return project


def _attentions(first: int | None) -> Iterator[Call]:
    for dtype, fp8 in product(("float32", "float16", "bfloat16"), (False, True)):
        # In fp8 without norms, whose last bit could choose another code.
        for group in (1, 2, 8) if fp8 else (1, 2, 3, 8):
            given = numbers(dtype, 3, (group + 2) * 2 * 16), *(numbers(dtype, 3, 2, 320, 16) for _ in "kv")
            for enough in (decode.ENOUGH_BLOCKS, 1):  # heads apart, and together
                yield Call(
                    _attend(dtype, group, first, enough, fp8),
                    (*given, numbers("float32", 320, 8), numbers(dtype, 16)),
                    widened=False,
                )


def _together() -> Iterator[Call]:
    """Heads that share keys on tensor cores: parts of one chunk, and such as could have several."""
    for dtype, positions in product(("float16", "bfloat16"), (320, 2112)):
        given = numbers(dtype, 3, 10 * 2 * 16), *(numbers(dtype, 3, 2, positions, 16) for _ in "kv")
        attend = _attend(dtype, 8, None, decode.ENOUGH_BLOCKS, False)
        yield Call(attend, (*given, numbers("float32", positions, 8), numbers(dtype, 16)), widened=False)


def _cache(k: gp.GPUArray, v: gp.GPUArray, fp8: bool) -> LayerCache:
    """Of these keys and values; in fp8 as codes, a fourth or four times of what they stand for."""
    if not fp8:
        return LayerCache(k.clone(), v.clone())
    scales = (gp.full(k.shape[:3], exponent, "uint8") for exponent in (125, 129))
    return LayerCache(*(x.astype("float8_e4m3") for x in (k, v)), *scales)


def _attend(dtype: str, group: int, first: int | None, enough: int, fp8: bool) -> Callable[..., list[gp.GPUArray]]:
    def attend(
        qkv: gp.GPUArray, k: gp.GPUArray, v: gp.GPUArray, table: gp.GPUArray, scale: gp.GPUArray
    ) -> list[gp.GPUArray]:
        heads = 2 * group
        config = TransformerConfig(
            hidden_size=32, num_heads=heads, num_kv_heads=2, _head_dim=16, sliding_window=290 if group == 2 else None,
            attention_chunk=74 if group == 8 else None,
        )  # fmt: skip
        norms = (Norm(scale), Norm(scale)) if group == 3 else (None, None)
        weights = gp.zeros((qkv.shape[1], 32), dtype), gp.zeros((32, heads * 16), dtype)
        layer = Attention(weights[0], None, None, weights[1], config, q_norm=norms[0], k_norm=norms[1])
        slots = (0, 1, 2) if first is None else (1, 1, 1)  # a step has one row of a sequence
        spans = () if first is None else (Span(0, 3, first, slots[0]),)
        rows = Batch(_integers(0, 0, 0), _integers(297, 298, 299), _integers(*slots), spans)
        buffers = AttentionBuffers.of(3, qkv.shape[1], heads * 16, heads, dtype)
        buffers.qkv[...] = qkv
        cache = _cache(k, v, fp8)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode, "ENOUGH_BLOCKS", enough)
            layer.write_and_attend(rows, cache, (table, table), buffers)
        stored = [array[:, :, 290:300] for array in cache.arrays]
        return [buffers.out, buffers.counters, *(x.astype("float32") if fp8 else x for x in stored)]

    return attend


def _gathers() -> Iterator[Call]:
    """Keys and values of a prompt's sequence out of its blocks, the last of which it has in part."""
    table, count = [3, 0, 2], 150

    def gather(k: gp.GPUArray, v: gp.GPUArray, fp8: bool = False) -> list[gp.GPUArray]:
        config = TransformerConfig(hidden_size=32, num_heads=2, num_kv_heads=2, _head_dim=16)
        weights = gp.zeros((96, 32), k.dtype), gp.zeros((32, 32), k.dtype)
        layer = Attention(weights[0], None, None, weights[1], config)
        slots = gp.from_numpy(np.array([table], np.int32))
        span = Span(0, 1, count - 1)
        rows = Batch(_integers(0), _integers(count - 1), slots, (span,))
        return list(kv_write.gathered(layer, rows, _cache(k, v, fp8), span, k.dtype))

    def joined(*blocks: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        return tuple(np.concatenate(array[table], axis=1)[:, :count] for array in blocks)

    def in_fp8(*blocks: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        k, v = joined(*blocks)
        return k / 4, v * 4

    for dtype in ("float32", "float16", "bfloat16"):
        yield Call(gather, (numbers(dtype, 4, 2, 64, 16), numbers(dtype, 4, 2, 64, 16)), joined)
        small = [numbers(dtype, 4, 2, 64, 16).astype("float8_e4m3").astype(dtype) for _ in "kv"]
        yield Call(partial(gather, fp8=True), tuple(small), in_fp8)


def _grown() -> Iterator[Call]:
    config = TransformerConfig(hidden_size=40, num_heads=5, use_rope=False, query_growth=0.3, query_floor=9.0)
    positions = 7, 8, 300

    def grow(qkv: gp.GPUArray) -> gp.GPUArray:
        weights = gp.zeros((qkv.shape[1], 40), qkv.dtype), gp.zeros((40, 40), qkv.dtype)
        layer, rows = Attention(weights[0], None, None, weights[1], config), qkv.clone()
        query_growth.grow_queries(layer, Batch(*(_integers(*positions),) * 3), rows)
        return rows

    def reference(qkv: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        factors = 1 + 0.3 * np.log1p((np.array(positions) + 1) // 9)
        return np.concatenate([qkv[:, :40] * factors[:, None], qkv[:, 40:]], axis=1)

    for dtype in ("float32", "float16", "bfloat16"):
        yield Call(grow, (numbers(dtype, 3, 120),), reference)


def _embeddings() -> Iterator[Call]:
    for dtype in ("float32", "float16", "bfloat16"):
        for learned in (False, True):

            def embed(table: gp.GPUArray, places: gp.GPUArray, learned: bool = learned) -> gp.GPUArray:
                out = gp.zeros((3, table.shape[1]))
                rows = Batch(_integers(4, 0, 6), _integers(1, 2, 0), _integers(0, 0, 0))
                embedding.embed(rows, table, places if learned else None, out)
                return out

            yield Call(embed, (numbers(dtype, 7, 300), numbers(dtype, 3, 300)), widened=False)


def _choices() -> Iterator[Call]:
    settings = (
        sampling.Sampling(top=4),
        sampling.Sampling(0.8, 30, 0.9, 0.001, 1.2, 0.3, 0.1, {3: 1.0}, seed=9, top=4),
    )

    def choose(logits: gp.GPUArray) -> list[gp.GPUArray]:
        sampler = sampling.Sampler(2, logits.shape[1], True, 4)
        rows = Batch(_integers(0, 0), _integers(5, 6), _integers(0, 1))
        for row, setting in enumerate(settings):
            sampler.load(row, setting, [1, 2], [2, 8])
        assert sampler.masks is not None
        sampler.masks.put({1: bytes(range(1, 1 + logits.shape[1] // 8))})
        gp.ops.copy_to(logits, sampler.logits)
        sampler.choose(rows)
        assert sampler.figures is not None
        return [rows.tokens, rows.positions, sampler.figures[:, :2]]

    yield Call(choose, (numbers("float32", 2, 700, high=6.0),), widened=False)


_CALLS = {
    linear.SOURCE.source: _linears,
    linear.GEMV.source: lambda: chain.from_iterable(_rows(stages) for stages in linear.STAGES),
    kv_write.SOURCE.source: lambda: chain(_attentions(297), _gathers()),
    decode.SOURCE.source: lambda: _attentions(None),
    decode.MMA.source: _together,
    query_growth.SOURCE.source: _grown,
    embedding.SOURCE.source: _embeddings,
    sampling.SOURCE.source: _choices,
}


def _family(source: str) -> Family:
    name = "model-" + source.rpartition("/")[2].removesuffix(".cu")
    return Family(name, (source,), lambda _: "all", lambda _: _CALLS[source]())


FAMILIES = tuple(_family(source) for source in _CALLS)
