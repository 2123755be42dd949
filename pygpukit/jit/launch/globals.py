"""The __device__ and __constant__ variables of a compiled unit, readable and writable from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.cached import cached_property
from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.jit.source.variables import Variable

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.jit.launch.unit import Unit

# Kinds of NumPy types: numbers go to the same rank or a higher one without a loss that is not rounding.
_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


class GlobalVariable:
    """One variable of a unit. Its kernels, and every kernel object of the same unit, see what is written.

    shape and dtype follow the declaration; a vector type adds an axis (float4 v[8] is (8, 4) float32), and a type that
    is not known from the source is uint8 of its bytes. A unit compiled for another backend tells sizes, not values.
    """

    def __init__(self, unit: Unit, variable: Variable) -> None:
        self._unit, self._variable = unit, variable

    @property
    def name(self) -> str:
        return self._variable.name

    @property
    def space(self) -> str:
        """ "__device__", "__constant__" or "__managed__"."""
        return self._variable.space

    @property
    def constant(self) -> bool:
        """True where it is declared const, so that write() refuses it."""
        return self._variable.constant

    @cached_property
    def nbytes(self) -> int:
        """Bytes in the image. Raises GPUError when the compiler left the variable out."""
        return self._unit.variable_bytes(self._variable)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self._variable.layout(self.nbytes)[1]

    @cached_property
    def dtype(self) -> DataType:
        return as_dtype(self._variable.layout(self.nbytes)[0])

    @cached_property
    def address(self) -> int:
        """Where it is on the device. Raises GPUError where the unit cannot be loaded."""
        return self._unit.variable_place(self._variable)[0]

    def array(self) -> GPUArray:
        """The variable's own memory as an array, no copy. The array keeps the module loaded.

        What work writes to a __constant__ variable's array shows in kernels launched afterwards.
        """
        module = self._unit.module(self.name)
        return native.wrap(self.address, self.nbytes, self.shape, self.dtype, module)

    def read(self) -> np.ndarray[Any, Any]:
        """A copy on the host. Waits for the current stream. Types NumPy lacks come as bits, as by to_numpy()."""
        return self.array().to_numpy()

    def write(self, value: Any) -> None:
        """Set the variable, in the order of the current stream; returns when `value` may be changed.

        value: a GPUArray or NumPy array of the variable's shape and dtype (for types NumPy lacks: of its bits), bytes
        of its size, or numbers in nested lists, which are converted. Raises ShapeError, DTypeError, ValueError (another
        number of bytes), GPUError for a const variable.
        """
        import numpy as np

        if self.constant:
            raise GPUError(f"{self.name} is declared const: compilers may have put its value into the code")
        target = self.array()
        if isinstance(value, (bytes, bytearray, memoryview)):
            if memoryview(value).nbytes != self.nbytes:
                raise ValueError(f"{self.name} has {self.nbytes} bytes, the value {memoryview(value).nbytes}")
            native.copy_from_host(target, value)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._check(value.shape, value.dtype.newbyteorder("="), self.dtype.to_numpy_dtype())
            native.copy_from_host(target, np.ascontiguousarray(value, self.dtype.to_numpy_dtype()))
        else:
            array = value if isinstance(value, native.ArrayBase) else self._converted(value)
            self._check(array.shape, array.dtype, self.dtype)
            target[...] = array

    def _check(self, shape: tuple[int, ...], dtype: object, expected: object) -> None:
        if shape != self.shape:
            raise ShapeError(f"{self.name} has shape {self.shape}, the value {shape}")
        if dtype != expected:
            raise DTypeError(f"{self.name} is {self.dtype}, the value {dtype}; convert it with .astype()")

    def _converted(self, numbers: Any) -> native.ArrayBase:
        """Python numbers as an array of the variable's dtype. Raises for those that the dtype cannot hold."""
        import numpy as np

        from pygpukit.array.factory import asarray

        host_dtype = self.dtype.to_numpy_dtype()
        lacking = self.dtype != host_dtype.name  # NumPy has a type of the same size for its bits only
        value_dtype = np.asarray(numbers).dtype
        if _RANKS.get(value_dtype.kind, len(_RANKS)) > _RANKS["f" if lacking else host_dtype.kind]:
            raise DTypeError(f"{self.name} is {self.dtype}, the value {value_dtype}; convert it first")
        return asarray(np.asarray(numbers, np.float32 if lacking else host_dtype), self.dtype)

    def __repr__(self) -> str:
        return f"<GlobalVariable {self._variable.space} {self.name}>"


class Globals(dict[str, GlobalVariable]):
    """The variables of a unit by qualified name; the name without namespaces does where it is not ambiguous."""

    def __init__(self, unit: Unit, variables: tuple[Variable, ...]) -> None:
        super().__init__({one.name: GlobalVariable(unit, one) for one in variables})
        self._short = [(one.short_name, one.name) for one in variables]

    def __missing__(self, name: str) -> GlobalVariable:
        names = [full for short, full in self._short if short == name]
        if len(names) == 1:
            return self[names[0]]
        raise KeyError(
            f"{name!r} is {'one of ' + ', '.join(names) if names else 'no variable of the source'}; "
            f"it has: {', '.join(self) or 'none'}"
        )
