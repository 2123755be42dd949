"""The shape of a texture or surface: which axes of an array are width, height, depth, layers, faces and channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# Numbers of native/include/pygpukit/driver.h, which are CUDA's.
FORMATS = {
    "uint8": 1, "uint16": 2, "uint32": 3, "int8": 8, "int16": 9, "int32": 10, "float16": 16, "float32": 32,
}  # fmt: skip
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
_MAX_GATHERED = 32768
CHANNELS = (1, 2, 4)
CLAMP = 1  # of the address modes
FACES = 6


@dataclass(frozen=True)
class Shape:
    """extents: width, height and depth, 0 for those that there are not; layers and faces are the depth."""

    extents: tuple[int, int, int]
    channels: int
    format: int
    flags: int
    dtype: str

    @property
    def volume(self) -> bool:
        """True where the depth is one, and no layers."""
        return self.extents[2] > 0 and not self.flags & (LAYERED | CUBEMAP)

    @property
    def max_levels(self) -> int:
        """Levels of a whole mipmap."""
        width, height, depth = self.extents
        return max(width, height, depth if self.volume else 0).bit_length()

    def addresses(self, modes: tuple[int, int, int]) -> tuple[int, int, int]:
        """The address modes of three axes: clamp for those that there are not, else a device filters a row with the
        border above it."""
        width, height, _ = self.extents
        x, y, z = (mode if there else CLAMP for mode, there in zip(modes, (width, height, self.volume), strict=True))
        return x, y, z

    def level(self, number: int) -> tuple[int, ...]:
        """The shape of an array with a level's elements: slices, rows, columns and channels, as far as there are."""
        width, height, depth = self.extents
        sizes = [max(depth >> number, 1)] if self.volume else [depth] if depth else []
        if self.flags & CUBEMAP and self.flags & LAYERED:
            sizes = [depth // FACES, FACES]
        sizes += [max(height >> number, 1)] if height else []
        return (*sizes, max(width >> number, 1), *([self.channels] if self.channels > 1 else []))

    def text(self) -> str:
        """`33 x 20 float32`, with what else there is to say."""
        depth, flags = self.extents[2], self.flags
        layers = depth // FACES if flags & CUBEMAP else depth
        size = " x ".join(str(extent) for extent in self.extents[: 3 if self.volume else 2] if extent)
        words = [size, self.dtype]
        words += [f"x {self.channels} channels"] if self.channels > 1 else []
        words += ["cubemap"] if flags & CUBEMAP else []
        words += [f"in {layers} layers"] if flags & LAYERED else []
        return " ".join(words)


def shape_of(array: GPUArray, what: str, channels: int, layered: bool, cubemap: bool) -> Shape:
    """The shape that an array gives. Raises TypeError, DTypeError, ShapeError and ValueError, which say what fits."""
    if not isinstance(array, native.ArrayBase):
        raise TypeError(
            f"a {what} is made of a GPUArray, not of a {type(array).__name__}; bring host data to the device: "
            "gp.from_numpy(x)"
        )
    dtype = array.dtype.name
    if dtype not in FORMATS:
        raise DTypeError(f"a {what} has no elements of {dtype}; use .astype() to one of {', '.join(FORMATS)}")
    if channels not in CHANNELS:
        raise ValueError(f"channels is {channels!r}; it must be 1, 2 or 4 (three are stored as four)")
    sizes = list(array.shape)
    if channels > 1 and (not sizes or sizes.pop() != channels):
        raise ShapeError(f"channels={channels} needs a last axis of {channels}, the array is of shape {array.shape}")
    if 0 in sizes:
        raise ShapeError(f"a {what} has at least one element, the array is of shape {array.shape}")
    slices = 1
    if layered:
        slices *= sizes.pop(0) if sizes else 0
    if cubemap:
        faces = sizes.pop(0) if sizes else 0
        if faces != FACES or len(sizes) != 2 or sizes[0] != sizes[1]:
            raise ShapeError(
                f"a cubemap is an array of shape ({'layers, ' * layered}6, N, N{', channels' * (channels > 1)}), not "
                f"{array.shape}"
            )
        slices *= FACES
    max_axes = 2 if layered or cubemap else 3
    if not 1 <= len(sizes) <= max_axes:
        raise ShapeError(
            f"{len(sizes)} axes are left for width, height and depth; there must be 1 to {max_axes}, the array is of "
            f"shape {array.shape} with channels={channels}"
        )
    width, height, depth = [*reversed(sizes), 0, 0][:3]
    flags = (LAYERED if layered else 0) | (CUBEMAP if cubemap else 0)
    plane = height > 0 and depth == 0 and not flags
    if plane and max(width, height) <= _MAX_GATHERED:
        flags |= GATHER
    return Shape((width, height, slices if layered or cubemap else depth), channels, FORMATS[dtype], flags, dtype)
