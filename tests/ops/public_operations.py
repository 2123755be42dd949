"""Calls of every public operation, for tests that hold for all: `operations()`, and `call_of(name)` for each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.names import public

ROWS, COLUMNS = 12, 16


@functools.cache
def names() -> dict[str, Any]:
    """What the calls below see. Made once; calls that write work on copies of their own."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    arrays = {
        "x": x,
        "y": x[::-1].copy(),
        "i": rng.integers(0, 5, (ROWS, COLUMNS)),
        "j": rng.integers(0, 5, (ROWS, COLUMNS)),
        "mask": x > 0,
        "c": x.astype(np.complex64),
        "row": x[0],
        "pick": np.array([3, 0, 5]),
        "square": x[:, :ROWS].copy(),
        "heads": rng.standard_normal((2, 6, 8)).astype(np.float32),
        "images": rng.standard_normal((1, 2, 9, 9)).astype(np.float32),
        "filters": rng.standard_normal((3, 2, 3, 3)).astype(np.float32),
        "signals": rng.standard_normal((1, 2, 20)).astype(np.float32),
        "taps": rng.standard_normal((3, 2, 3)).astype(np.float32),
    }
    return {"gp": gp, "np": np, "host": x, **{name: gp.from_numpy(value) for name, value in arrays.items()}}


# Calls of the operations that want more than one or two arrays of one shape.
SPECIAL = {
    "append": "gp.append(x, y)",
    "apply_along_axis": "gp.apply_along_axis(gp.sort, 1, x[:3])",
    "argpartition": "gp.argpartition(x, 3)",
    "average": "gp.average(x, 1)",
    "batched_matmul": "gp.batched_matmul(heads, heads.transpose(0, 2, 1))",
    "bias_add_inplace": "gp.bias_add_inplace(x.clone(), row)",
    "bincount": "gp.bincount(i[0])",
    "block": "gp.block([[x], [y]])",
    "broadcast_to": "gp.broadcast_to(row, (5, 16))",
    "choose": "gp.choose(mask.astype('int64'), [x, y])",
    "clamp": "gp.clamp(x, -1.0, 1.0)",
    "clip": "gp.clip(x, -1.0, 1.0)",
    "compress": "gp.compress(mask[:, 0], x, 0)",
    "concat": "gp.concat([x, y])",
    "concatenate": "gp.concatenate([x, y])",
    "conv1d": "gp.conv1d(signals, taps)",
    "conv2d": "gp.conv2d(images, filters)",
    "conv_plan": "gp.conv_plan(signals, taps)",
    "conv_transpose1d": "gp.conv_transpose1d(signals, taps[:2])",
    "conv_transpose2d": "gp.conv_transpose2d(images, filters[:2])",
    "convolve": "gp.convolve(row, row)",
    "copyto": "gp.copyto(x.clone(), y)",
    "correlate": "gp.correlate(row, row)",
    "cross": "gp.cross(x[:, :3], y[:, :3])",
    "cumulative_prod": "gp.cumulative_prod(x, axis=1)",
    "cumulative_sum": "gp.cumulative_sum(x, axis=1)",
    "delete": "gp.delete(x, 1, 1)",
    "digitize": "gp.digitize(x, gp.sort(row))",
    "dot": "gp.dot(row, row)",
    "dsplit": "gp.dsplit(heads, 2)",
    "einsum": "gp.einsum('ij,kj->ik', x, y)",
    "einsum_path": "gp.einsum_path('ij,kj,kl->il', x, y, x)",
    "embedding": "gp.embedding(x, pick)",
    "expand_dims": "gp.expand_dims(x, 1)",
    "extract": "gp.extract(mask, x)",
    "fill_diagonal": "gp.fill_diagonal(x.clone(), 0)",
    "full_like": "gp.full_like(x, 2)",
    "gradient": "gp.gradient(x)",
    "grouped_matmul": "gp.grouped_matmul(heads[0], heads.transpose(0, 2, 1), pick[:2])",
    "groupnorm": "gp.groupnorm(images, 2)",
    "histogram": "gp.histogram(x, 8, (0.0, 1.0))",
    "histogram2d": "gp.histogram2d(row, row, 4, [(0.0, 1.0), (0.0, 1.0)])",
    "histogram_bin_edges": "gp.histogram_bin_edges(x, 8, (0.0, 1.0))",
    "histogramdd": "gp.histogramdd(x[:, :2], 4, [(0.0, 1.0), (0.0, 1.0)])",
    "insert": "gp.insert(x, 1, row, 0)",
    "interp": "gp.interp(x, gp.sort(row), row)",
    "layernorm": "gp.layernorm(x, row, row)",
    "lexsort": "gp.lexsort([row, row])",
    "linear": "gp.linear(x, y, row[:12])",
    "linear_bias_gelu": "gp.linear_bias_gelu(x, y, row[:12])",
    "lstm_bidirectional": "gp.lstm_bidirectional(heads, *2 * (x.T[:, :8], x.T[:, :4], row, row))",
    "lstm_forward": "gp.lstm_forward(heads, x.T[:, :8], x.T[:, :4], row, row)",
    "matmul": "gp.matmul(x, y.T)",
    "matmul_fp4": "gp.matmul_fp4(x.astype('bfloat16'), gp.ops.quantize_nvfp4(y))",
    "matmul_fp8": "gp.matmul_fp8(x, y.T.astype('float8_e4m3'))",
    "matmul_int8": "gp.matmul_int8(i.astype('int8'), j.astype('int8').T)",
    "moveaxis": "gp.moveaxis(x, 0, 1)",
    "nanpercentile": "gp.nanpercentile(x, 30.0, 1)",
    "nanquantile": "gp.nanquantile(x, 0.3, 1)",
    "outer": "gp.outer(row, row)",
    "pad": "gp.pad(x, 1)",
    "partition": "gp.partition(x, 3)",
    "percentile": "gp.percentile(x, 30.0, 1)",
    "permute": "gp.permute(x, (1, 0))",
    "permute_dims": "gp.permute_dims(x, (1, 0))",
    "polyval": "gp.polyval(row, x)",
    "put": "gp.put(x.clone(), pick, row[:3])",
    "put_along_axis": "gp.put_along_axis(x.clone(), i, y, axis=0)",
    "putmask": "gp.putmask(x.clone(), mask, y)",
    "quantile": "gp.quantile(x, 0.3, 1)",
    "ravel_multi_index": "gp.ravel_multi_index((i, j), (5, 5))",
    "repeat": "gp.repeat(x, 2, axis=0)",
    "reshape": "gp.reshape(x.T, (-1,))",
    "resize": "gp.resize(x, (5, 7))",
    "rmsnorm": "gp.rmsnorm(x, row)",
    "roll": "gp.roll(x, 3)",
    "rope_inplace": "gp.rope_inplace(heads.clone(), heads.clone(), x[:2, :8], x[:2, :8])",
    "sdpa": "gp.sdpa(heads, heads, heads)",
    "sdpa_causal": "gp.sdpa_causal(heads, heads, heads)",
    "sdpa_decode": "gp.sdpa_decode(heads[None], heads[None], heads[None], pick[:1].astype('int32'))",
    "searchsorted": "gp.searchsorted(gp.sort(row), x)",
    "select": "gp.select([mask], [x], 0)",
    "snake": "gp.snake(heads, row[:6])",
    "split": "gp.split(x, 2)",
    "stack": "gp.stack([x, y])",
    "sum_axis": "gp.sum_axis(x, 1)",
    "swapaxes": "gp.swapaxes(x, 0, 1)",
    "take": "gp.take(x, pick, axis=0)",
    "take_along_axis": "gp.take_along_axis(x, i, axis=0)",
    "tensordot": "gp.tensordot(x, y, ((1,), (1,)))",
    "tile": "gp.tile(x, (2, 1))",
    "topk": "gp.topk(x, 3)",
    "trapezoid": "gp.trapezoid(x)",
    "unravel_index": "gp.unravel_index(i, (5, 5))",
    "vander": "gp.vander(row)",
    "where": "gp.where(mask, x, y)",
}
# Where an operation has no line above: the first of these that it takes.
USUAL = ("x", "x, y", "i", "i, j", "mask", "mask, mask", "c", "heads", "square", "x, 0", "x, 2", "row, row", "[x, y]")


def operations() -> list[str]:
    """Public functions that live in pygpukit.ops."""
    return sorted(name for name in public() if inspect.isfunction(getattr(gp, name)) and name not in NOT_OF_ARRAYS)


# They take no arrays: makers of arrays, tables, settings and decorators.
NOT_OF_ARRAYS = {
    "diag_indices",
    "eye",
    "fastest_products",
    "fuse",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "rope_init_linear",
    "rope_init_llama3",
    "rope_init_ntk_aware",
    "rope_init_yarn",
    "set_sampling_seed",
    "tri",
    "tril_indices",
    "triu_indices",
}


def call_of(name: str) -> Callable[[], object]:
    """A call of the operation, by its line above or with the first arguments that it takes."""
    if name in SPECIAL:
        return expression(SPECIAL[name])
    for arguments in USUAL:
        call = expression(f"gp.{name}({arguments})")
        try:
            call()
        except (gp.GPUError, TypeError, ValueError, IndexError):
            continue
        return call
    pytest.fail(f"gp.{name} takes none of the usual arguments: give it a line in SPECIAL")


def expression(text: str) -> Callable[[], object]:
    call: Callable[[], object] = eval(f"lambda: {text}", names())
    return call
