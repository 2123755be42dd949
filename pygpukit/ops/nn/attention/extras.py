"""Options of attention beside queries, keys and values: windows, lengths, masks, caps and sinks, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import bfloat16, bool_, float16, float32, int32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.sizes import factor, whole
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

FAR = 1 << 40  # more keys than there are
LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Extras:
    """ahead, behind: keys after and before its own place that a query sees. lengths: of the keys, (B,) or one int32.
    mask: float32, of the scores' shape, possibly by steps of 0. cap: of scores, none when 0. sinks: float32, (H,)."""

    ahead: int = 0
    behind: int = FAR
    lengths: GPUArray | None = None
    mask: GPUArray | None = None
    cap: float = 0.0
    sinks: GPUArray | None = None

    @property
    def arrays(self) -> list[GPUArray]:
        """Those that there are."""
        return [array for array in (self.lengths, self.mask, self.sinks) if array is not None]

    @property
    def change_scores(self) -> bool:
        """True where weights are other than those of a prefix of the keys."""
        return self.behind != FAR or self.mask is not None or self.cap != 0 or self.sinks is not None


def checked(
    what: str,
    scores: tuple[int, ...],
    causal: bool,
    *,
    scale: float,
    window: int | None,
    lengths: GPUArray | None = None,
    mask: GPUArray | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
) -> tuple[float, Extras]:
    """The scale, and the extras of scores of shape ([B,] H, q, kv), as users give them. Raises as sdpa_causal()."""
    scale = factor(scale, f"{what}: scale")
    cap = 0.0 if soft_cap is None else factor(soft_cap, f"{what}: soft_cap", positive=True)
    for name, number in (("scale", scale), ("soft_cap", cap)):
        factor(number * LOG2_E, f"{what}: {name} log2(e)")  # as kernels take it
    reach = FAR
    if window is not None:
        window = whole(window, f"{what}: window", "a whole number of keys, or None for no window")
        if window < 1:
            raise InvalidSpecError(f"{what}: window is {window}, must be 1 or more keys; None is no window", "window")
        reach = min(window - 1, FAR)
    extras = Extras(
        0 if causal else reach,
        reach,
        _lengths(what, lengths, scores),
        _mask(what, mask, scores),
        cap,
        _sinks(what, sinks, scores[-3]),
    )
    check_devices(what, *extras.arrays)
    return scale, extras


def _lengths(what: str, lengths: GPUArray | None, scores: tuple[int, ...]) -> GPUArray | None:
    if lengths is None:
        return None
    count = scores[0] if len(scores) == 4 else 1
    if check_array(lengths, f"{what}: lengths").dtype != int32 or lengths.shape != (count,):
        raise DTypeError(f"{what}: lengths are {lengths.dtype} of shape {lengths.shape}, must be int32 ({count},)")
    return lengths


def _mask(what: str, mask: GPUArray | None, scores: tuple[int, ...]) -> GPUArray | None:
    from pygpukit.ops.elementwise import where
    from pygpukit.ops.shape import broadcast_to

    if mask is None:
        return None
    if check_array(mask, f"{what}: mask").dtype not in (bool_, float32, float16, bfloat16):
        raise DTypeError(f"{what}: mask is {mask.dtype}, must be bool (True: seen) or a float that is added to scores")
    aligned = mask.shape[::-1]
    if mask.ndim > len(scores) or any(n not in (1, m) for n, m in zip(aligned, scores[::-1], strict=False)):
        raise ShapeError(f"{what}: mask has shape {mask.shape}, must broadcast to the scores' {scores}")
    if mask.dtype == bool_:
        mask = where(mask, 0.0, -math.inf)
    return broadcast_to(mask.astype("float32"), scores)


def _sinks(what: str, sinks: GPUArray | None, heads: int) -> GPUArray | None:
    from pygpukit.ops import copying

    if sinks is None:
        return None
    if check_array(sinks, f"{what}: sinks").shape != (heads,):
        raise ShapeError(f"{what}: sinks have shape {sinks.shape}, must be {(heads,)}: a score for each query head")
    if sinks.dtype not in (float32, float16, bfloat16):
        raise DTypeError(f"{what}: sinks are {sinks.dtype}, must be float32, float16 or bfloat16")
    return copying.contiguous(sinks.astype("float32"))
