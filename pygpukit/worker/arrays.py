"""Arrays over the border: on the parent's side as exported segments, on the worker's side mapped again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import native

Array = Any  # a GPUArray; the compiled type is not known to the type checker


class Handover:
    """Contiguous arrays made ready for another process: pinned, their segments exported once each. Use as a context."""

    def __init__(self, arrays: Sequence[tuple[str, Array]]) -> None:
        self.descriptions: list[dict[str, Any]] = []
        self.segments: list[int] = []  # bytes of each
        self.descriptors: list[int] = []
        self._starts: list[int] = []  # address of each here
        self._pinned: list[Array] = []
        try:
            for name, array in arrays:
                self._add(name, array)
            native.synchronize()  # whatever fills the arrays is done before another process reads them
        except BaseException:
            self.close()
            raise

    def _add(self, name: str, array: Array) -> None:
        if not array.is_contiguous():
            raise ValueError(f"argument {name}: a worker takes C-contiguous arrays; pass .contiguous() and copy back")
        native.pin(array)
        self._pinned.append(array)
        address = array.device_ptr
        place = self._segment_of(array.device, address)
        self.descriptions.append(
            {
                "segment": place,
                "offset": address - self._starts[place],
                "nbytes": array.nbytes,
                "shape": list(array.shape),
                "dtype": array.dtype.name,
                "device": array.device,
            }
        )

    def _segment_of(self, device: int, address: int) -> int:
        for place, start in enumerate(self._starts):
            if start <= address < start + self.segments[place]:
                return place
        descriptor, start, nbytes = _core.pool_segment_export(device, address)
        self.descriptors.append(descriptor)
        self._starts.append(start)
        self.segments.append(nbytes)
        return len(self.segments) - 1

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        for array in self._pinned:
            native.unpin(array)
        self.descriptors, self._pinned = [], []

    def __enter__(self) -> Handover:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Segment:
    """A parent's segment mapped here; unmapped when the last array over it is gone."""

    def __init__(self, descriptor: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.address = native.import_segment(descriptor, nbytes)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            native.release_segment(self.address)


def take_over(
    segments: Sequence[int], descriptors: Sequence[int], descriptions: Sequence[dict[str, Any]]
) -> list[Array]:
    """The arrays of a Handover in this process. Raises ValueError for a description that leaves its segment."""
    if len(segments) != len(descriptors):
        raise ValueError(f"{len(segments)} segments came with {len(descriptors)} file descriptors")
    mapped: dict[int, Segment] = {}
    arrays = []
    for d in descriptions:
        native.set_device(d["device"])
        place = d["segment"]
        if place not in mapped:
            mapped[place] = Segment(descriptors[place], segments[place])
        segment = mapped[place]
        if d["offset"] < 0 or d["offset"] + d["nbytes"] > segment.nbytes:
            raise ValueError(f"an array of {d['nbytes']} bytes at offset {d['offset']} leaves its segment")
        shape = tuple(d["shape"])
        arrays.append(native.wrap(segment.address + d["offset"], d["nbytes"], shape, d["dtype"], segment))
    if descriptions:
        native.set_device(descriptions[0]["device"])  # the function starts on its first array's device
    return arrays
