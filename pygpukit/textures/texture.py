"""Texture: an array that kernels read through the device's address modes and filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.errors import ShapeError
from pygpukit.textures.opened import Opened
from pygpukit.textures.shape import GATHER, Shape, shape_of
from pygpukit.textures.surface import Surface

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_ADDRESSES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
_FILTERS = {"point": 0, "linear": 1}
_READS = ("element", "normalized")
_LAYOUTS = ("array", "linear", "pitched")
_INTEGERS, _NORMALIZED_COORDINATES = 1, 2
ALIGNMENT, PITCH_ALIGNMENT = 512, 32  # bytes: of the memory's begin, and of a row's length


class Texture(Opened):
    """An array that kernels read with tex1D(), tex2D() and the like, by a parameter `cudaTextureObject_t`.

    The elements are copied, in stream order, into memory of the device's own layout; what is written to the array
    later does not change the texture. `layout="linear"` and `"pitched"` read the array's own memory instead.

    Parameters
    ----------
    array : GPUArray or Surface
        Of shape (W,), (H, W) or (D, H, W), and a last axis of channels if there is more than one; 8-, 16- or 32-bit
        integers, float16 (which kernels read as float) or float32. With `layered` one axis of layers comes first, with
        `cubemap` one of the six faces: (layers, 6, N, N, channels). Of a surface: its memory, without a copy.
    filter : {"point", "linear"}
        The nearest element, or the elements around a place mixed by their distance, in steps of 1/256.
    address : {"clamp", "wrap", "mirror", "border"} or tuple of them
        What lies outside, or by axis, in the order x, y, z. "wrap" and "mirror" need `normalized`; without it the
        device clamps.
    normalized : bool
        Coordinates from 0 to 1 instead of elements.
    read : {"element", "normalized"}
        Integers of 8 and 16 bits as they are, or as floats from 0 to 1 (signed ones: from -1).
    channels : {1, 2, 4}
        Numbers of an element: float, float2 or float4 in the kernel.
    layered, cubemap : bool
        What the first axes are.
    mipmaps : None, "mean" or sequence of GPUArray
        Smaller levels after the array: the mean of 2, 4 or 8 elements each (float32 and float16 only; an odd last row
        or column counts for nothing), or the arrays given, each half the size of the one before, rounded down.
    mipmap_filter : {"point", "linear"}
        The nearest level, or two mixed.
    levels : tuple of three floats
        Added to a level that is asked for, the least, and the most that is read.
    border : float or tuple of four floats
        What lies outside with "border".
    layout : {"array", "linear", "pitched"}
        "linear": the memory of a contiguous (W,) array, for tex1Dfetch(). "pitched": that of a (H, W) array whose rows
        may lie apart. Such an array begins at a multiple of 512 bytes, rows at one of 32: `Texture.empty()`.
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
    ... extern "C" __global__ void between(cudaTextureObject_t image, float *out) {
    ...     out[threadIdx.x] = tex1D<float>(image, threadIdx.x + 1.0f);
    ... }''')
    >>> out = gp.zeros(3)
    >>> with gp.Texture(gp.from_numpy(np.float32([0, 10, 20, 30])), filter="linear") as image:
    ...     kernel[1, 3](image, out)
    >>> out.to_numpy()
    array([ 5., 15., 25.], dtype=float32)
    """

    kind = "texture"

    def __init__(
        self,
        array: GPUArray | Surface,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        normalized: bool = False,
        read: str = "element",
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        mipmaps: str | Sequence[GPUArray] | None = None,
        mipmap_filter: str = "point",
        levels: tuple[float, float, float] = (0.0, 0.0, 1000.0),
        border: float | Sequence[float] = 0.0,
        layout: str = "array",
        name: str = "texture",
    ) -> None:
        _choice("read", read, _READS)
        _choice("layout", layout, _LAYOUTS)
        modes = _addresses(address)
        self._settings = [f"filter={filter!r}", f"address={address!r}"]
        self._settings += ["normalized=True"] if normalized else []
        self._settings += [f"read={read!r}"] if read != "element" else []
        if isinstance(array, Surface):
            shape = array.shape_seen()
        else:
            shape = shape_of(array, "texture", channels, layered, cubemap)
        _check_reading(shape, filter, read, normalized or cubemap, mipmaps is not None)
        flags = (_INTEGERS if read == "element" else 0) | (_NORMALIZED_COORDINATES if normalized or cubemap else 0)
        reading = native.TextureReading(
            flags,
            _choice("filter", filter, _FILTERS),
            _choice("mipmap_filter", mipmap_filter, _FILTERS),
            shape.addresses(modes),
            _floats("levels", levels, 3),
            _floats("border", [border] * 4 if isinstance(border, int | float) else border, 4),
        )
        if isinstance(array, Surface):
            if mipmaps is not None or layout != "array":
                raise ValueError("a texture of a surface is of the surface's one level and layout")
            super().__init__(array.memory, reading)
        elif layout == "array":
            memory, smaller = _filled(array, shape, mipmaps, name)
            super().__init__(memory, reading)
            self._settings += [f"mipmaps={smaller + 1} levels"] if mipmaps is not None else []
        else:
            if mipmaps is not None:
                raise ValueError(f'mipmaps need layout="array"; layout is {layout!r}')
            self._settings.append(f"layout={layout!r}")
            super().__init__(array, shape.format, channels, _memory(array, shape, layout), reading)
        self._shape = shape

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: Any = "float32", *, channels: int = 1) -> GPUArray:
        """An array whose memory a texture can read without a copy.

        Parameters
        ----------
        shape : tuple of int
            (W,) for `layout="linear"`, (H, W) for `layout="pitched"`; channels are a further axis.
        dtype : dtype
            Of the elements.
        channels : {1, 2, 4}
            Numbers of an element.

        Returns
        -------
        GPUArray
            Of shape `shape`, and `channels` if there is more than one; not initialised. It is a view of a larger
            array, whose rows lie apart where their length is no multiple of 32 bytes.

        Examples
        --------
        >>> gp.Texture.empty((3, 5)).strides
        (32, 4)
        """
        from pygpukit.array.factory import empty

        if len(shape) not in (1, 2):
            raise ShapeError(f"linear and pitched memory has one or two axes, the shape is {shape}")
        one = empty((1,), dtype)
        row = shape[-1] * channels
        rows = shape[0] if len(shape) == 2 else 1
        step = PITCH_ALIGNMENT // one.itemsize
        pitch = -(-row // step) * step
        room = empty((rows * pitch + ALIGNMENT // one.itemsize,), dtype)
        first = -room.device_ptr % ALIGNMENT // one.itemsize
        whole = room[first : first + rows * pitch].reshape(rows, pitch)[:, :row]
        axes = whole if len(shape) == 2 else whole.reshape(row)
        return axes if channels == 1 else axes.reshape(*shape, channels)

    def __repr__(self) -> str:
        return f"<{'closed ' * self.closed}Texture {self._shape.text()}, {', '.join(self._settings)}>"


def _choice(name: str, value: Any, choices: Any) -> int:
    """The number of a setting; for a sequence its position."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be {' or '.join(map(repr, choices))}")
    return int(choices[value]) if isinstance(choices, dict) else list(choices).index(value)


def _addresses(address: str | Sequence[str]) -> tuple[int, int, int]:
    modes = [address] * 3 if isinstance(address, str) else list(address)
    if not 1 <= len(modes) <= 3:
        raise ValueError(f"address is {address!r}; it must be one mode, or one for each of up to three axes")
    numbers = [_choice("address", one, _ADDRESSES) for one in modes]
    x, y, z = [*numbers, *numbers[-1:] * 2][:3]
    return x, y, z


def _floats(name: str, values: Sequence[float], count: int) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != count:
        raise ValueError(f"{name} has {len(numbers)} numbers; it must have {count}")
    return numbers


def _check_reading(shape: Shape, filter: str, read: str, normalized: bool, mipmapped: bool) -> None:
    wide = shape.dtype in ("int32", "uint32")
    floats = shape.dtype.startswith("float")
    if read == "normalized" and (wide or floats):
        raise ValueError(f'read="normalized" is for integers of 8 and 16 bits, the array is of {shape.dtype}')
    if filter == "linear" and not floats and read == "element":
        remedy = "astype(gp.float32)" if wide else 'read="normalized"'
        raise ValueError(f'filter="linear" needs floats, the array is of {shape.dtype}; use {remedy}')
    if mipmapped and not normalized:
        raise ValueError("mipmaps need normalized=True: levels differ in size")


def _filled(
    array: GPUArray, shape: Shape, mipmaps: str | Sequence[GPUArray] | None, name: str
) -> tuple[native.DeviceArray, int]:
    """Memory of the device's layout with the array's elements, and how many smaller levels it has."""
    smaller = _smaller(array, shape, mipmaps)
    flags = shape.flags & ~GATHER if mipmaps is not None else shape.flags
    levels = 0 if mipmaps is None else 1 + len(smaller)
    memory = native.DeviceArray(shape.extents, shape.format, shape.channels, flags, levels, name)
    for number, one in enumerate([array, *smaller]):
        memory.copy(one if one.is_contiguous() else one.contiguous(), number, True)
    return memory, len(smaller)


def _smaller(array: GPUArray, shape: Shape, mipmaps: str | Sequence[GPUArray] | None) -> list[GPUArray]:
    if mipmaps is None:
        return []
    if isinstance(mipmaps, str):
        _choice("mipmaps", mipmaps, ("mean",))
        if not shape.dtype.startswith("float"):
            raise ValueError(f'mipmaps="mean" needs floats, the array is of {shape.dtype}; give the levels')
        from pygpukit.textures.mipmap import halved

        levels = [array]
        while len(levels) < shape.max_levels:
            levels.append(halved(levels[-1], shape, len(levels)))
        return levels[1:]
    arrays = list(mipmaps)
    if len(arrays) >= shape.max_levels:
        raise ShapeError(f"{len(arrays)} smaller levels are given; this size has {shape.max_levels - 1}")
    for number, one in enumerate(arrays, 1):
        expected = shape.level(number)
        actual = (tuple(one.shape), one.dtype.name) if isinstance(one, native.ArrayBase) else (type(one).__name__, "")
        if actual != (expected, shape.dtype):
            raise ShapeError(f"level {number} must be a GPUArray of shape {expected} and {shape.dtype}, it is {actual}")
    return arrays


def _memory(array: GPUArray, shape: Shape, layout: str) -> tuple[int, int, int]:
    """Width, height and pitch in bytes of an array whose own memory is read. Height 0: linear."""
    width, height, depth = shape.extents
    if depth or (layout == "linear") is not (height == 0):
        axes = "(W,)" if layout == "linear" else "(H, W)"
        raise ShapeError(f"layout={layout!r} is for arrays of shape {axes} and channels, not {tuple(array.shape)}")
    element = array.itemsize * shape.channels
    dense = (element, array.itemsize) if shape.channels > 1 else (element,)
    strides = tuple(array.strides)
    inner = strides if layout == "linear" else strides[1:]
    pitch = 0 if layout == "linear" else strides[0] if height > 1 else -(-width * element // 32) * 32
    remedy = 'make the array with gp.Texture.empty(), or use layout="array", which copies'
    if inner != dense or pitch < 0 or (pitch and pitch < width * element):
        raise ShapeError(f"layout={layout!r} needs elements one beside the other, the strides are {strides}; {remedy}")
    if array.device_ptr % ALIGNMENT or pitch % PITCH_ALIGNMENT:
        raise ValueError(
            f"layout={layout!r} needs memory that begins at a multiple of {ALIGNMENT} bytes and rows at one of "
            f"{PITCH_ALIGNMENT}; {remedy}"
        )
    return width, height, pitch
