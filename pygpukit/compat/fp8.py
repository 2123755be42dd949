"""FP8 weights (E4M3 with a scale for each block) by the documented names: their values, and products with them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float32, uint8, uint16
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.models.convert import convert
from pygpukit.ops import copying, elementwise
from pygpukit.ops.indexing.padding import repeat
from pygpukit.ops.matmul.fp8 import matmul_fp8
from pygpukit.ops.operands import check_array, check_out

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.models.safetensors import SafeTensorsFile, ShardedSafeTensorsFile

_BLOCK = 128  # of columns that products scale together


def dequantize_fp8_e4m3_block(
    fp8_bytes: np.ndarray[Any, Any], scale_inv: np.ndarray[Any, Any], block_size: tuple[int, int] = (128, 128)
) -> np.ndarray[Any, Any]:
    """The numbers of FP8 codes (E4M3), each times the scale of its block.

    Parameters
    ----------
    fp8_bytes
        uint8 (out, in), the codes.
    scale_inv
        (out, in) over block_size, rounded up; float32, float16, or uint16 for the bits of bfloat16.
    block_size
        (rows, columns) that share a scale; the last of each may be shorter.

    Returns
    -------
    float32 (out, in). Codes that are no number are NaN.

    Raises
    ------
    DTypeError, ShapeError

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.full((2, 4), 0x38, np.uint8)  # 1.0
    >>> gp.llm.dequantize_fp8_e4m3_block(codes, np.float32([[0.5, 2]]), (2, 2))[0].tolist()
    [0.5, 0.5, 2.0, 2.0]
    """
    import numpy as np

    if fp8_bytes.dtype != np.uint8:
        raise DTypeError(f"dequantize_fp8_e4m3_block: fp8_bytes is {fp8_bytes.dtype}, must be uint8, the codes")
    _check_scales("dequantize_fp8_e4m3_block", fp8_bytes.shape, scale_inv.shape, block_size)
    steps = convert(scale_inv, bfloat16, float32) if scale_inv.dtype == np.uint16 else scale_inv.astype(np.float32)
    out, columns = fp8_bytes.shape
    rows = np.repeat(steps, block_size[0], axis=0)[:out]
    with np.errstate(all="ignore"):
        return convert(fp8_bytes, float8_e4m3, float32) * np.repeat(rows, block_size[1], axis=1)[:, :columns]


def is_fp8_weight(tensor_name: str, tensor_names: Collection[str]) -> bool:
    """True if a tensor has the scales of FP8 beside it: tensor_name + "_scale_inv" is among tensor_names."""
    return f"{tensor_name}_scale_inv" in tensor_names


def load_fp8_weight_direct(
    st: SafeTensorsFile | ShardedSafeTensorsFile, weight_name: str, block_size: tuple[int, int] = (128, 128)
) -> tuple[GPUArray, GPUArray]:
    """A weight of FP8 on the device as the file has it: its codes and their scales.

    Parameters
    ----------
    st
        An open file.
    weight_name
        Of the codes; the scales are weight_name + "_scale_inv".
    block_size
        (rows, columns) that share a scale.

    Returns
    -------
    float8_e4m3 (out, in), and the scales in the type of the file, as LinearFP8 takes both.

    Raises
    ------
    KeyError
        One of the tensors is not there.
    DTypeError, ShapeError
        They are no such weight.
    """
    what, codes, scales = "load_fp8_weight_direct", st.tensor_info(weight_name), f"{weight_name}_scale_inv"
    steps = st.tensor_info(scales)
    kinds = codes.dtype.data_type, steps.dtype.data_type
    if kinds[0] not in (float8_e4m3, uint8) or kinds[1] not in (float32, bfloat16):
        raise DTypeError(
            f"{what}: {weight_name!r} is {kinds[0]} and {scales!r} {kinds[1]}, must be float8_e4m3 or uint8, "
            "and float32 or bfloat16"
        )
    _check_scales(what, tuple(codes.shape), tuple(steps.shape), block_size)
    weight, scale = factory.from_numpy(st.array(weight_name)), factory.from_numpy(st.array(scales))
    return weight.view(float8_e4m3), scale if kinds[1] == float32 else scale.view(bfloat16)


class LinearFP8:
    """y = x W^T + b with a weight of FP8, which products read as it is.

    Parameters
    ----------
    weight_fp8
        (out, in) of float8_e4m3, or uint8: its codes.
    scale_inv
        (out, in) over block_size, rounded up: float32, bfloat16, or uint16 for the bits of bfloat16.
    bias
        (out,), or None.
    block_size
        (rows, columns) that share a scale; columns: a multiple of 128.

    Raises
    ------
    DTypeError, ShapeError
    InvalidSpecError
        Blocks of other columns; dequantize_fp8_e4m3_block() gives the values for a Linear.
    """

    def __init__(
        self,
        weight_fp8: GPUArray,
        scale_inv: GPUArray,
        bias: GPUArray | None = None,
        block_size: tuple[int, int] = (128, 128),
    ) -> None:
        kinds = check_array(weight_fp8, "LinearFP8: weight_fp8").dtype, check_array(scale_inv, "LinearFP8: scale").dtype
        if kinds[0] not in (float8_e4m3, uint8) or kinds[1] not in (float32, bfloat16, uint16):
            raise DTypeError(
                f"LinearFP8: weight_fp8 is {kinds[0]} and scale_inv {kinds[1]}, must be float8_e4m3 or uint8, "
                "and float32, bfloat16 or uint16"
            )
        _check_scales("LinearFP8", weight_fp8.shape, scale_inv.shape, block_size)
        if block_size[1] % _BLOCK:
            raise InvalidSpecError(
                f"LinearFP8: block_size is {block_size}, its columns must be a multiple of {_BLOCK}; for others make a "
                "Linear of dequantize_fp8_e4m3_block()",
                "block_size",
            )
        self.out_features, self.in_features = weight_fp8.shape
        if bias is not None and check_array(bias, "LinearFP8: bias").shape != (self.out_features,):
            raise ShapeError(f"LinearFP8: bias has shape {bias.shape}, must be ({self.out_features},) for that weight")
        self.weight_fp8, self.scale_inv, self.bias, self.block_size = weight_fp8, scale_inv, bias, block_size
        self._scale = self._of_blocks()

    def _of_blocks(self) -> GPUArray:
        """Scales as products take them: float32, of blocks of 128 by 128, or of each row for 128 columns."""
        scale = self.scale_inv.view(bfloat16) if self.scale_inv.dtype == uint16 else self.scale_inv
        scale, (rows, columns) = scale.astype(float32), self.block_size
        if self.block_size == (_BLOCK, _BLOCK):
            return scale
        wide = repeat(repeat(scale, rows, axis=0), columns // _BLOCK, axis=1)
        return wide[: self.out_features, : -(-self.in_features // _BLOCK)].clone()

    def __call__(self, x: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
        """x (..., in) of bfloat16, float16 or float32 gives (..., out) of its type. Raises ShapeError, DTypeError."""
        if not check_array(x, "LinearFP8: x").ndim or x.shape[-1] != self.in_features:
            raise ShapeError(f"LinearFP8: x has shape {x.shape}, must be (..., {self.in_features}) for that weight")
        weight = self.weight_fp8.view(float8_e4m3)
        rows = x.reshape(-1, self.in_features)
        result = matmul_fp8(rows, weight.T, scale_b=self._scale.T, out_dtype=x.dtype)
        if self.bias is not None:
            result = elementwise.add(result, self.bias)
        result = result.reshape(*x.shape[:-1], self.out_features)
        if out is None:
            return result
        check_out(out, result.shape, result.dtype, "LinearFP8")
        copying.copy_to(result, out)
        return out


def _check_scales(what: str, shape: tuple[int, ...], scales: tuple[int, ...], block: tuple[int, int]) -> None:
    if len(block) != 2 or not all(type(extent) is int and extent > 0 for extent in block):
        raise InvalidSpecError(f"{what}: block_size is {block!r}, must be two whole numbers above 0", "block_size")
    if len(shape) != 2:
        raise ShapeError(f"{what}: the weight has shape {shape}, must be (out, in)")
    want = tuple(-(-extent // size) for extent, size in zip(shape, block, strict=True))
    if scales != want:
        raise ShapeError(f"{what}: the scales have shape {scales}, must be {want}: {shape} by blocks of {block}")
