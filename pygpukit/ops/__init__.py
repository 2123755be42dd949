"""Operations on arrays."""

from pygpukit.ops.copying import copy_to
from pygpukit.ops.elementwise import add, add_inplace, div, mul, mul_inplace, neg, sub
from pygpukit.ops.matmul.gemm import (
    matmul,  # also the sub-package's name; the function is what `ops.matmul` means
)

__all__ = ["add", "add_inplace", "copy_to", "div", "matmul", "mul", "mul_inplace", "neg", "sub"]
