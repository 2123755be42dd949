"""Arrays: GPUArray, how arrays are made, shown and handed to other libraries. `pygpukit.array(...)` makes one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class _Callable(ModuleType):
    """The package's module type: one name is both this package and NumPy's function, as pygpukit.jit is."""

    def __call__(self, *args: Any, **kwargs: Any) -> GPUArray:
        """A new array with the values of an object: pygpukit.array.factory.array()."""
        from pygpukit.array.factory import array

        return array(*args, **kwargs)


def __dir__() -> list[str]:
    """The modules of the package that are loaded."""
    return sorted(name for name, value in globals().items() if getattr(value, "__package__", "") == __name__)


sys.modules[__name__].__class__ = _Callable
