"""Surface: an array in the device's own layout that kernels read and write by place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.textures.opened import Opened
from pygpukit.textures.shape import GATHER, SURFACE, Shape, shape_of

if TYPE_CHECKING:
    import numpy

    from pygpukit.array.array import GPUArray


class Surface(Opened):
    """An array that kernels read and write with surf2Dread(), surf2Dwrite() and the like, by a parameter
    `cudaSurfaceObject_t`.

    The elements are copied, in stream order, into memory of the device's own layout; to_array() copies them back. The x
    of these functions counts bytes.

    Parameters
    ----------
    array : GPUArray
        Of shape (W,), (H, W) or (D, H, W), and a last axis of channels if there is more than one; 8-, 16- or 32-bit
        integers, float16 or float32. `layered` and `cubemap` as for Texture.
    channels : {1, 2, 4}
        Numbers of an element.
    layered, cubemap : bool
        What the first axes are.
    name : str
        What memory views call its memory.

    Raises
    ------
    TypeError, DTypeError, ShapeError, ValueError
        For an array or a setting that does not fit, saying what does.
    OutOfMemoryError
        The device or a limit has no room for the copy.

    Examples
    --------
    >>> kernel = gp.jit('''
    ... extern "C" __global__ void mark(cudaSurfaceObject_t image) {
    ...     surf2Dwrite(1.0f, image, 4 * threadIdx.x, threadIdx.x);
    ... }''')
    >>> with gp.Surface(gp.zeros((2, 3))) as image:
    ...     kernel[1, 2](image)
    ...     image.to_numpy()
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """

    kind = "surface"

    def __init__(
        self,
        array: GPUArray,
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        name: str = "surface",
    ) -> None:
        shape = shape_of(array, "surface", channels, layered, cubemap)
        self._shape = replace(shape, flags=shape.flags & ~GATHER | SURFACE)
        self._extents = tuple(array.shape)
        memory = native.DeviceArray(shape.extents, shape.format, channels, self._shape.flags, 0, name)
        memory.copy(array if array.is_contiguous() else array.contiguous(), 0, True)
        super().__init__(memory, 0)
        self._memory: native.DeviceArray | None = memory

    @property
    def memory(self) -> native.DeviceArray:
        """The memory that it shares with textures of it. Raises ValueError when it was closed."""
        if self._memory is None:
            raise ValueError("the surface was closed")
        return self._memory

    def shape_seen(self) -> Shape:
        """The shape as a texture of it has it."""
        return self._shape

    def to_array(self) -> GPUArray:
        """The elements as a new array, in stream order.

        Returns
        -------
        GPUArray
            Of the shape and type that the surface was made of.

        Raises
        ------
        ValueError
            The surface was closed.

        Examples
        --------
        >>> gp.Surface(gp.ones((2, 3))).to_array().shape
        (2, 3)
        """
        from pygpukit.array.factory import empty

        out = empty(self._extents, self._shape.dtype)
        self.memory.copy(out, 0, False)
        return out

    def to_numpy(self) -> numpy.ndarray[Any, Any]:
        """The elements as a NumPy array. Waits for them.

        Returns
        -------
        numpy.ndarray
            Of the shape and type that the surface was made of.

        Raises
        ------
        ValueError
            The surface was closed.

        Examples
        --------
        >>> gp.Surface(gp.ones(2)).to_numpy()
        array([1., 1.], dtype=float32)
        """
        return self.to_array().to_numpy()

    def close(self) -> None:
        """As Texture.close(); a texture of it keeps its memory."""
        super().close()
        self._memory = None

    def __repr__(self) -> str:
        return f"<{'closed ' * self.closed}Surface {self._shape.text()}>"
