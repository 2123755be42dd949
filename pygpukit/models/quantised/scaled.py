"""Weights of eight bits with scales beside them: one for a tensor, a row, a block or a group of a row.

FP8 of DeepSeek, Qwen and FBGEMM, ModelOpt's FP8, compressed-tensors (MXFP8 too), and bitsandbytes' int8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import bfloat16, float8_e4m3, float8_e5m2, float16, int8, uint8
from pygpukit.models.quantised.blocks import longest, of_bytes, of_ints
from pygpukit.models.quantised.codes import powers
from pygpukit.models.quantised.tensors import SCALES, Tensors
from pygpukit.models.stored import Int8Rows, Stored

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FLOATS = (float8_e4m3, float8_e5m2)
CODES = (*FLOATS, int8, uint8)
WEIGHT = ".weight"
_BLOCK = (128, 128)
_WITH_ZEROS = tuple((scale, int8, int8) for scale in (float16, bfloat16))  # types of blocks' scales, zeros and codes
_ROW_SCALE = ".input_scale"
_FORMAT = ".weight_format"  # bitsandbytes: 0 for rows as they are


@dataclass(frozen=True)
class Scaled:
    """(code - zero) * scale. zero: the codes of zero; block: how long blocks are, if it is given; rounds: "dynamic" or
    "static" where the configuration has rows rounded to int8 before they are multiplied with it."""

    code: str
    scale: str
    zero: str | None = None
    block: tuple[int, int] | None = None
    divisor: float = 1.0
    rounds: str | None = None

    kind = "8 bits with scales"

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.code, self.scale, *([] if self.zero is None else [self.zero])

    def check(self, stored: Tensors) -> None:
        for name in self.tensors[1:]:
            kinds = (*SCALES, uint8) if name == self.scale else (*SCALES, *CODES)
            stored.check(name, kinds, (None,) * len(stored.shape(name)))
            _form(stored, stored.shape(name), self.shape(stored), self.block, name)

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        return stored.shape(self.code)

    def values(self, stored: Tensors) -> Array:
        import numpy as np

        values = stored.floats(self.code)
        values = values if values.flags.writeable else values.copy()
        steps = self._steps(stored)
        if self.zero is not None:
            values -= _spread(stored, stored.floats(self.zero), values.shape, self.block, self.zero)
        with np.errstate(all="ignore"):
            values *= _spread(stored, steps, values.shape, self.block, self.scale)
            if self.divisor != 1.0:
                values /= np.float32(self.divisor)
        return values

    def blocks(self, stored: Tensors) -> Stored | None:
        shape, kind = self.shape(stored), stored.dtype(self.code)
        known = {float8_e4m3: "FP8", int8: "I8"}.get(kind)
        if len(shape) != 2 or known is None or self.divisor != 1.0:
            return None
        if self.zero is not None:
            kinds = stored.dtype(self.scale), stored.dtype(self.zero), kind
            if kinds not in _WITH_ZEROS or stored.shape(self.zero) != stored.shape(self.scale):
                return None
            known = "I8Z"
        scale = stored.shape(self.scale)
        count = 1
        for extent in scale:
            count *= extent
        if count in (1, shape[0]):
            extent = shape[1]
        else:
            extent = (self.block or _block(shape, scale))[1] if len(scale) == 2 and 0 not in scale else 1
        values = longest(extent) if shape[1] % 32 == 0 else None
        if values is None or shape[1] % values:
            return None

        def rows() -> Array:
            import numpy as np

            def of_blocks(numbers: Array, name: str) -> Array:
                spread = _spread(stored, numbers, shape, self.block, name, values)
                return np.array(np.broadcast_to(spread, (shape[0], shape[1] // values)), np.float32)

            scales = of_blocks(self._steps(stored), self.scale)
            codes = np.ascontiguousarray(stored.read(self.code)).view(np.uint8)
            if self.zero is not None:
                return of_ints(codes.view(np.int8), of_blocks(stored.floats(self.zero), self.zero), scales, values)
            if kind == float8_e4m3:  # a code that is no number makes its block none
                scales[(codes & 127 == 127).reshape(*scales.shape, -1).any(-1)] = np.nan
            return of_bytes(codes, scales)

        has_rows = known == "I8" and count in (1, shape[0])
        return Stored(f"{known}_{values}", rows, int8=self._int8(stored) if has_rows else None)

    def _int8(self, stored: Tensors) -> Int8Rows | None:
        """Codes and scales of rows, where rows of activations are rounded, too."""
        name = f"{self.code.removesuffix(WEIGHT)}{_ROW_SCALE}"
        scale = None
        if self.rounds == "static":
            if name not in stored.names or stored.shape(name) not in ((), (1,), (1, 1)):
                return None
            scale = float(stored.floats(name).reshape(())[()])
        if self.rounds is None or (scale is not None and not 0 < scale < float("inf")):
            return None

        def scales() -> Array:
            import numpy as np

            steps = self._steps(stored).astype(np.float32).reshape(-1)
            return np.ascontiguousarray(np.broadcast_to(steps, self.shape(stored)[:1]))

        return Int8Rows(lambda: stored.read(self.code), scales, scale)

    def _steps(self, stored: Tensors) -> Array:
        if stored.dtype(self.scale) == uint8:
            return powers(stored.read(self.scale))
        return stored.floats(self.scale)


def scaled(
    stored: Tensors, name: str, block: tuple[int, int] | None, quantised: bool, rounds: str | None = None
) -> Scaled | None:
    """The weight of that name if it has 8 bits; None if it has not. Raises ModelFileError for one without a scale."""
    kind = stored.dtype(name)
    if not name.endswith(WEIGHT) or kind not in CODES:
        return None
    by_row = f"{name.removesuffix(WEIGHT)}.SCB"
    if by_row in stored.names and kind == int8:
        return Scaled(name, by_row, divisor=127.0)
    scale = next((other for other in (f"{name}_scale_inv", f"{name}_scale") if other in stored.names), None)
    if scale is not None and kind != uint8:
        zero = f"{name}_zero_point"
        return Scaled(name, scale, zero if zero in stored.names else None, block, rounds=rounds)
    if quantised or kind not in FLOATS:
        raise stored.error(f"the weight {name!r} is {kind.name} and has no scale beside it")
    return None


def check_formats(stored: Tensors) -> None:
    """Raises ModelFileError where bitsandbytes' weights are in another order than rows."""
    for name in stored.names:
        if name.endswith(_FORMAT) and stored.read(name).any():
            raise stored.error(f"{name} is {stored.read(name).tolist()!r}; what is read is 0, rows")


def _form(
    stored: Tensors, scale: tuple[int, ...], shape: tuple[int, ...], block: tuple[int, int] | None, name: str
) -> tuple[int, ...]:
    """Scales of a tensor, (); of rows, (1,); of blocks, their size. Raises ModelFileError for what fits none of it."""
    count = 1
    for extent in scale:
        count *= extent
    if count == 1:
        return ()
    if len(shape) == 2 and scale in ((shape[0],), (shape[0], 1)):
        return (1,)
    if len(shape) == 2 and len(scale) == 2 and 0 not in scale and 0 not in shape:
        sizes = block or _block(shape, (scale[0], scale[1]))
        if tuple(-(-length // size) for length, size in zip(shape, sizes, strict=True)) == scale:
            return tuple(min(length, size) for length, size in zip(shape, sizes, strict=True))
    raise stored.error(f"the scales {name!r} of shape {scale} do not fit a weight of {shape}")


def _spread(
    stored: Tensors, scale: Array, shape: tuple[int, ...], block: tuple[int, int] | None, name: str, every: int = 1
) -> Array:
    """Scales of a tensor, of rows or of blocks, in a shape that broadcasts with the weight's: with the first of every
    so many of its columns."""
    import numpy as np

    sizes = _form(stored, scale.shape, shape, block, name)
    if len(sizes) < 2:
        return scale.reshape(-1, 1) if sizes else scale.reshape(())
    columns = scale[:, np.arange(0, shape[1], every) // sizes[1]]
    return np.repeat(columns, sizes[0], axis=0)[: shape[0]]


def _block(shape: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, int]:
    """The block shape where the file gives none: groups of a row, or 128 by 128, or what divides the weight evenly."""
    if counts[0] == shape[0]:
        return 1, max(shape[1] // counts[1], 1)
    if counts == (-(-shape[0] // _BLOCK[0]), -(-shape[1] // _BLOCK[1])):
        return _BLOCK
    return max(shape[0] // counts[0], 1), max(shape[1] // counts[1], 1)
