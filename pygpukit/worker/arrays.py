"""Arrays over the border: on the parent's side exported segments or host copies, on the worker's side mapped again."""

from __future__ import annotations

import contextlib
import mmap
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _core
from .._core import native
from ..array.array import GPUArray
from ..core.errors import GPUError
from ..core.linux import available_bytes
from .held import Export, hold

_GRANULE = 2 << 20  # segments are mapped in pages of this size, on cuda and on the simulation
_ALIGNMENT = 512  # of the pool's blocks: copies are aligned as their arrays are

Array = GPUArray | Any  # its compiled base is not known to the type checker


class Handover:
    """Contiguous arrays made ready for another process: pinned, their segments exported once each. Use as a context.

    exports: those that end with it; who gives them to a process takes them out and ends them with what it maps.
    """

    def __init__(self, arrays: Sequence[tuple[str, Array]]) -> None:
        self.descriptions: list[dict[str, Any]] = []
        self.segments: list[int] = []  # bytes of each
        self.descriptors: list[int] = []
        self.exports: list[Export] = []
        self._starts: list[int] = []  # address of each here
        self._pinned: list[Array] = []
        try:
            for name, array in arrays:
                self._add(name, array)
            if self.descriptions:
                native.synchronize()  # whatever fills the arrays is done before another process reads them
        except BaseException:
            self.close()
            raise

    def _add(self, name: str, array: Array) -> None:
        _check_contiguous(name, array)
        native.pin(array)
        self._pinned.append(array)
        address = array.device_ptr
        place = self._segment_of(array.device, address)
        self.descriptions.append(_description(array, place, address - self._starts[place], array.device))

    def _segment_of(self, device: int, address: int) -> int:
        for place, start in enumerate(self._starts):
            if start <= address < start + self.segments[place]:
                return place
        descriptor, start, nbytes, number = _core.pool_segment_export(device, address)
        self.descriptors.append(descriptor)
        self.exports.append((device, number))
        self._starts.append(start)
        self.segments.append(nbytes)
        return len(self.segments) - 1

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        for array in self._pinned:
            native.unpin(array)
        end_exports(self.exports)
        self.descriptors, self._pinned, self.exports = [], [], []

    def __enter__(self) -> Handover:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HostCopies:
    """Copies of contiguous arrays in host memory, as a Handover for a process on the simulation. Use as a context.

    Arrays that overlap do so there too. Raises GPUError, before anything is copied, when the memory is not there.
    """

    def __init__(self, arrays: Sequence[tuple[str, Array]]) -> None:
        for name, array in arrays:
            _check_contiguous(name, array)
        spans = _merged([_span(array) for _, array in arrays])
        self.segments = [-(-(end - start + start % _ALIGNMENT) // _GRANULE) * _GRANULE for _, start, end in spans]
        self.descriptions: list[dict[str, Any]] = []
        self.descriptors: list[int] = []
        self.exports: list[Export] = []  # copies need none
        needed, there = sum(end - start for _, start, end in spans), available_bytes()
        if there is not None and needed > there:
            raise GPUError(f"the arrays' copies take {needed >> 20} MiB of host memory, {there >> 20} MiB are free")
        try:
            for size in self.segments:
                self.descriptors.append(os.memfd_create("pygpukit-copies", os.MFD_CLOEXEC))
                os.ftruncate(self.descriptors[-1], size)
            for _, array in arrays:
                device, address, _ = _span(array)
                place = bisect_right([(on, start) for on, start, _ in spans], (device, address)) - 1
                start = spans[place][1]
                offset = address - start + start % _ALIGNMENT
                self._copy(array, place, offset)
                self.descriptions.append(_description(array, place, offset, device=0))
        except BaseException:
            self.close()
            raise

    def _copy(self, array: Array, place: int, offset: int) -> None:
        if not array.nbytes:
            return
        with (
            mmap.mmap(self.descriptors[place], self.segments[place]) as mapped,
            memoryview(mapped) as whole,
            whole[offset : offset + array.nbytes] as target,
        ):
            native.copy_to_host(target, array)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def __enter__(self) -> HostCopies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def end_exports(exports: Iterable[Export]) -> None:
    """Blocks of segments that no other process maps any more may leave the device again."""
    for device, number in exports:
        _core.pool_end_export(device, number)


_Span = tuple[int, int, int]  # device, first address, address behind the last


def _span(array: Array) -> _Span:
    return array.device, array.device_ptr, array.device_ptr + max(array.nbytes, 1)


def _merged(spans: Sequence[_Span]) -> list[_Span]:
    """The spans in order, those that overlap as one."""
    out: list[_Span] = []
    for device, start, end in sorted(spans):
        if out and out[-1][0] == device and start < out[-1][2]:
            out[-1] = device, out[-1][1], max(end, out[-1][2])
        else:
            out.append((device, start, end))
    return out


def _check_contiguous(name: str, array: Array) -> None:
    if not array.is_contiguous():
        raise ValueError(f"argument {name}: a worker takes C-contiguous arrays; pass .contiguous() and copy back")


def _description(array: Array, segment: int, offset: int, device: int) -> dict[str, Any]:
    return {
        "segment": segment,
        "offset": offset,
        "nbytes": array.nbytes,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "device": device,
    }


class Segment:
    """A parent's segment mapped here; unmapped when the last array over it is gone."""

    def __init__(self, descriptor: int, nbytes: int, export: Export | None) -> None:
        self.nbytes = nbytes
        self.address = native.import_segment(descriptor, nbytes)
        if export is not None:
            hold(self, export)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            with contextlib.suppress(GPUError):  # of a context that a fault destroyed, and its mappings with it
                native.release_segment(self.address)


def take_over(
    segments: Sequence[int],
    descriptors: Sequence[int],
    descriptions: Sequence[dict[str, Any]],
    exports: Sequence[Sequence[int]] = (),
) -> list[Array]:
    """The arrays of a Handover in this process. exports: of each segment, where the owner asks what is still held().

    Raises ValueError for a description that leaves its segment.
    """
    if len(segments) != len(descriptors):
        raise ValueError(f"{len(segments)} segments came with {len(descriptors)} file descriptors")
    mapped: dict[int, Segment] = {}
    arrays = []
    for d in descriptions:
        native.set_device(d["device"])
        place = d["segment"]
        if place not in mapped:
            export = (exports[place][0], exports[place][1]) if exports else None
            mapped[place] = Segment(descriptors[place], segments[place], export)
        segment = mapped[place]
        if d["offset"] < 0 or d["offset"] + d["nbytes"] > segment.nbytes:
            raise ValueError(f"an array of {d['nbytes']} bytes at offset {d['offset']} leaves its segment")
        shape = tuple(d["shape"])
        arrays.append(native.wrap(segment.address + d["offset"], d["nbytes"], shape, d["dtype"], segment))
    if descriptions:
        native.set_device(descriptions[0]["device"])  # the function starts on its first array's device
    return arrays
