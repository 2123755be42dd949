"""Choosing tokens from logits: greedy, temperature, min-p, top-k, top-p; on the device, one launch for all rows.

Tokens are ordered by falling logit, equal ones by index; min-p, top-k and top-p keep a beginning of that order.
Probabilities are integers in units of 2^-40, so that their sums are exact: the token is a function of the row's logits,
the settings, the seed and the position alone, the same on `cuda` and `sim`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, bfloat16, float16, float32, int32, int64, uint64
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.sizes import factor, whole
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, overlaps, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["sample_token", "set_sampling_seed"]
LOW_LEVEL = [
    "sample_greedy",
    "sample_multinomial",
    "sample_token_gpu",
    "sample_topk",
    "sample_topk_to_buf_ptr",
    "sample_topp",
]

SOURCE = kernels.KernelSpec(__file__, "sampling.cu")
_CALL = SOURCE.structure("SamplingCall")
_THREADS = 1024  # sampling.cuh: kThreads
_HEAD = 256  # of the largest, that are sorted first where top_p may need no more
_DOMAIN = 0x73616D706C696E67  # sampling.cuh: kDomain
_LOGITS = (float16, bfloat16, float32)
_MAX_VOCAB = 1 << 23  # sums of that many probabilities of 2^40 fit 64 bits


class _State:
    """Seed and position of the calls that are given none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed, self.position = 0, 0


_state = _State()


def set_sampling_seed(seed: int) -> None:
    """Start the sequence of the calls that are given no seed again, with another one (0 to 2^64 - 1)."""
    seed = _unsigned(seed, "seed")
    with _state.lock:
        _state.seed, _state.position = seed, 0


def sample_token(
    logits: GPUArray,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    seed: int | GPUArray | None = None,
    position: int | GPUArray = 0,
    out: GPUArray | None = None,
) -> GPUArray:
    """One token of each row of logits, as int32 on the device: shape (V,) gives (), (B, V) gives (B,).

    logits: float16, bfloat16 or float32, any strides; NaN counts as minus infinity. temperature divides them; 0 takes
    the first of the largest. Then min_p keeps tokens with at least min_p times the largest probability, top_k (0: all)
    the k most probable, top_p the smallest group of those that has at least that share of their probability.
    Probabilities below 2^-40 of the largest count as 0.

    seed, position: which random number, as ints, or as int64 arrays (B,) on the device, one a row. A row with a seed of
    its own gives the same token wherever it stands in a batch; with one seed for all, rows differ by their number.
    Without a seed: set_sampling_seed()'s, and the next position at each call. A captured graph draws anew each time it
    runs if it is given positions on the device. out: int32, written and returned.
    One launch, asynchronous on the current stream; nothing is copied to the host.

    Raises DTypeError, ShapeError, DeviceMismatchError; InvalidSpecError naming a setting that is out of range.
    """
    what = "sample_token"
    rows = _rows(check_array(logits, what), what)
    settings = check_settings(temperature, top_k, top_p, min_p)
    if seed is None:
        if isinstance(position, native.ArrayBase) or position:
            raise InvalidSpecError("sample_token: a position without a seed; give seed=, too", "position")
        with _state.lock:
            seed, position = _state.seed, _state.position
            _state.position = (position + 1) % 2**64
    seeds = _per_row(seed, rows.shape[0], "seed")
    positions = _per_row(position, rows.shape[0], "position")
    target = _target(out, logits.shape[:-1], what)
    check_devices(what, logits, *(x for x in (seeds, positions, target) if isinstance(x, native.ArrayBase)))
    result = target if target.is_contiguous() and not overlaps(target, logits) else native.empty(target.shape, int32)
    _choose(rows, result, settings, seeds, positions, None)
    if result is not target:
        from pygpukit.ops import copying

        copying.copy_to(result, target)
    return target


def sample_token_gpu(logits: GPUArray, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
    """sample_token() of one row, (V,) or (1, V), as a Python int: waits for it and copies 4 bytes to the host."""
    if check_array(logits, "sample_token_gpu").ndim == 2 and logits.shape[0] != 1:
        raise ShapeError(
            f"sample_token_gpu: logits of shape {logits.shape} have {logits.shape[0]} rows; use sample_token()"
        )
    return int(sample_token(logits, temperature=temperature, top_k=top_k, top_p=top_p).item())


def sample_greedy(logits: GPUArray) -> int:
    """The first of the largest logits. See sample_token_gpu()."""
    return sample_token_gpu(logits, temperature=0.0)


def sample_multinomial(logits: GPUArray, temperature: float) -> int:
    """A token of all. See sample_token_gpu()."""
    return sample_token_gpu(logits, temperature)


def sample_topk(logits: GPUArray, top_k: int, temperature: float) -> int:
    """One of the k most probable tokens. See sample_token_gpu()."""
    return sample_token_gpu(logits, temperature, top_k=top_k)


def sample_topp(logits: GPUArray, top_p: float, temperature: float) -> int:
    """One of the most probable tokens that have the share top_p together. See sample_token_gpu()."""
    return sample_token_gpu(logits, temperature, top_p=top_p)


def sample_topk_to_buf_ptr(
    logits: GPUArray, result_buf: GPUArray, random_val_buf: GPUArray, top_k: int, temperature: float
) -> None:
    """One of the k most probable tokens into result_buf (int32), by a given random number of [0, 1) (float32).

    logits: (V,) or (B, V); the buffers hold one element a row, on the device, so that a captured graph takes new random
    numbers each time it runs. Errors as sample_token().
    """
    what = "sample_topk_to_buf_ptr"
    rows = _rows(check_array(logits, what), what)
    count = rows.shape[0]
    for name, array, dtype in (("result_buf", result_buf, int32), ("random_val_buf", random_val_buf, float32)):
        if check_array(array, f"{what}: {name}").dtype != dtype:
            raise DTypeError(f"{what}: {name} is {array.dtype}, must be {dtype}")
        if array.size != count or not array.is_contiguous():
            raise ShapeError(f"{what}: {name} of shape {array.shape} must hold {count} elements, contiguous")
    check_devices(what, logits, result_buf, random_val_buf)
    _choose(rows, result_buf, check_settings(temperature, top_k, 1.0, 0.0), 0, 0, random_val_buf)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that sampling can ask for."""
    for dtype in _LOGITS:
        yield (_expression(dtype),)


def _expression(dtype: DataType) -> str:
    return f"pk::sample_rows<{CTYPES[dtype.name]}>"


Settings = tuple[float, int, float, float]  # temperature, top_k, top_p, min_p


def check_settings(temperature: float, top_k: int, top_p: float, min_p: float) -> Settings:
    """The settings, in range and as numbers of their types. Raises InvalidSpecError naming one that is not."""
    temperature = factor(temperature, "temperature")
    if temperature and not 1e-30 <= temperature <= 1e30:
        raise InvalidSpecError(f"temperature is {temperature}, must be 0 or of 1e-30 to 1e30", "temperature")
    top_k = whole(top_k, "top_k", "a whole number, 0 (all) or more")
    if top_k < 0:
        raise InvalidSpecError(f"top_k is {top_k}, must be 0 (all) or more", "top_k")
    top_p, min_p = factor(top_p, "top_p"), factor(min_p, "min_p")
    if not 0 < top_p <= 1:
        raise InvalidSpecError(f"top_p is {top_p}, must be above 0 and at most 1 (all)", "top_p")
    if not 0 <= min_p <= 1:
        raise InvalidSpecError(f"min_p is {min_p}, must be of 0 (all) to 1", "min_p")
    return temperature, top_k, top_p, min_p


def _rows(logits: GPUArray, what: str) -> GPUArray:
    """The logits as a matrix."""
    if logits.dtype not in _LOGITS:
        raise DTypeError(f"{what}: logits are {logits.dtype}, must be float16, bfloat16 or float32; use .astype()")
    if logits.ndim not in (1, 2) or not 0 < logits.shape[-1] <= _MAX_VOCAB:
        raise ShapeError(
            f"{what}: logits have shape {logits.shape}, must be (V,) or (batch, V) with V of 1 to {_MAX_VOCAB}"
        )
    return logits if logits.ndim == 2 else logits[None]


def _unsigned(value: int, what: str) -> int:
    value = whole(value, what, "a whole number of 0 to 2^64 - 1")
    if not 0 <= value < 2**64:
        raise InvalidSpecError(f"{what} {value} is outside 0 to 2^64 - 1", what)
    return value


def _per_row(value: int | GPUArray, rows: int, what: str) -> int | GPUArray:
    if not isinstance(value, native.ArrayBase):
        return _unsigned(value, what)
    if value.dtype not in (int64, uint64):
        raise DTypeError(f"sample_token: {what} is {value.dtype}, must be int64")
    if value.shape != (rows,) or not value.is_contiguous():
        raise ShapeError(f"sample_token: {what} has shape {value.shape}, must be ({rows},), contiguous")
    return value


def _target(out: GPUArray | None, shape: tuple[int, ...], what: str) -> GPUArray:
    if out is None:
        return native.empty(shape, int32)
    if check_array(out, f"{what}: out").dtype != int32:
        raise DTypeError(f"{what}: out is {out.dtype}, must be int32")
    if out.shape != shape:
        raise ShapeError(f"{what}: out has shape {out.shape}, the result has shape {shape}")
    return out


def _choose(
    rows: GPUArray,
    out: GPUArray,
    settings: Settings,
    seeds: int | GPUArray,
    positions: int | GPUArray,
    draws: GPUArray | None,
) -> None:
    if not out.size:
        return
    if host.computes():
        arrays = [x for x in (rows, out, seeds, positions, draws) if isinstance(x, native.ArrayBase)]
        native.host_launch("sample_token", lambda: _on_host(rows, out, settings, seeds, positions, draws), arrays)
        return
    temperature, top_k, top_p, min_p = settings
    own_seeds, own_positions = (isinstance(x, native.ArrayBase) for x in (seeds, positions))
    logits, start = span(rows)
    steps = [step // rows.itemsize for step in rows.strides]
    row_step, step = steps
    packed = _CALL.pack(
        vocab=rows.shape[1],
        start=start,
        row_step=row_step,
        step=step,
        seed=0 if own_seeds else seeds,
        position=0 if own_positions else positions,
        top_p=share_of(top_p),
        top_k=min(top_k, rows.shape[1]),
        seeded_rows=own_seeds,
        positioned_rows=own_positions,
        has_draws=draws is not None,
        has_min_p=min_p > 0,
        temperature=temperature,
        log_min_p=math.log(min_p) if min_p else 0.0,
    )
    indices = [x if isinstance(x, native.ArrayBase) else out for x in (seeds, positions, draws)]
    grid = (rows.shape[0], 1, 1)
    kernels.launch(SOURCE.of(_expression(rows.dtype)), grid, (_THREADS, 1, 1), logits, *indices, out, packed)


def share_of(top_p: float) -> int:
    """top_p times 2^64, 0 for all."""
    return 0 if top_p >= 1 else max(1, round(top_p * 2**64)) % 2**64


def _on_host(
    rows: GPUArray,
    out: GPUArray,
    settings: Settings,
    seeds: int | GPUArray,
    positions: int | GPUArray,
    draws: GPUArray | None,
) -> None:
    import numpy as np

    logits = host.values(rows).astype(np.float32)
    logits = np.where(np.isnan(logits), np.float32(-np.inf), logits)
    tokens = host.memory(out).reshape(-1)
    for number, row in enumerate(logits):
        if draws is not None:
            draw = min(float(host.memory(draws).reshape(-1)[number]), 0.99999994)
            bits = int(draw * 2.0**64) if draw > 0 else 0
        else:
            shared = not isinstance(seeds, native.ArrayBase)
            seed, position = (
                int(host.memory(x)[number]) % 2**64 if isinstance(x, native.ArrayBase) else x
                for x in (seeds, positions)
            )
            bits = random_bits(seed, position, number if shared else 0)
        temperature, top_k, top_p, min_p = settings
        log_min_p = math.log(min_p) if min_p else -math.inf
        tokens[number] = choice_on_host(row, temperature, top_k, share_of(top_p), log_min_p, bits)


def random_bits(seed: int, position: int, call: int) -> int:
    """The random number of a draw, times 2^64."""
    from pygpukit.ops.random import philox

    return int(philox.joined(philox.words(seed ^ _DOMAIN, [position], call))[0, 0])


def choice_on_host(logits: Any, temperature: float, top_k: int, share: int, log_min_p: float, bits: int) -> int:
    """The token of one row of float32 logits without NaN.

    share: share_of(top_p); log_min_p: -inf for all; bits: the random number times 2^64, not used at temperature 0.
    """
    import numpy as np

    from pygpukit.ops.random import philox

    if temperature == 0:
        return int(np.argmax(logits))
    with np.errstate(all="ignore"):
        z = logits / np.float32(temperature)
        largest = z.max()
        # Of those that may be chosen alone: weights of a whole vocabulary cost more than all else here.
        inside = _inside(z, top_k, largest + np.float32(log_min_p))
        z = z[inside]
        weights = np.where(z == largest, np.uint64(1 << 40), philox.exp_units(z - largest))
    candidates = _largest(z, _nucleus(z, weights, share) if share else z.size)
    sums = np.cumsum(weights[candidates])
    point = (bits * int(sums[-1])) >> 64
    return int(inside[candidates[np.searchsorted(sums, np.uint64(point), side="right")]])


def _inside(z: Any, top_k: int, smallest: Any) -> Any:
    """The indices, ascending, of those not below the smallest, of the top_k largest (0: all), ties by index."""
    import numpy as np

    indices = np.flatnonzero(z >= smallest) if smallest > -math.inf else np.arange(z.size)
    return indices if not 0 < top_k < indices.size else indices[np.sort(_largest(z[indices], top_k))]


def _largest(z: Any, count: int) -> Any:
    """The indices of the `count` largest, ties by index: those above the last of them in the order of the vocabulary,
    then those equal to it."""
    import numpy as np

    last = z.min() if count == z.size else np.partition(z, z.size - count)[z.size - count]
    above = np.flatnonzero(z > last)
    return np.concatenate([above, np.flatnonzero(z == last)[: count - above.size]])


def _nucleus(z: Any, weights: Any, share: int) -> int:
    """The number of the largest that have the share of the weight of all; few are sorted at first."""
    import numpy as np

    target = (int(weights.sum()) * share - 1) >> 64
    count = min(_HEAD, z.size)
    while True:
        head = _largest(z, count)
        sums = np.cumsum(weights[head[np.argsort(-z[head], kind="stable")]])
        if count == z.size or sums[-1] > target:
            return int(np.searchsorted(sums, np.uint64(target), side="right")) + 1
        count = min(16 * count, z.size)
