"""TimelineWidget: a profile's works over time and what the device waited for, to zoom, search and sum up in the page.

The page asks for the records chunk by chunk, each some columns of numbers by significance, compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.profiling import Profile
from pygpukit.profiling.latest import latest, subscribe
from pygpukit.profiling.table import notes

if TYPE_CHECKING:
    from pygpukit.profiling import Wait, Work

CHUNK = 65536  # records of a message; extension/core/src/timeline/data.ts has the same
MIN_WAIT_US = 1.0
_NONE = "No profile has ended yet: run a cell with %%gpu_profile, or use gp.profiling.profile()."
_MAX_WIDTH = 6  # bytes of a number


class _Table:
    """Names, lanes or places of records, each once, by its number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def all(self) -> list[Any]:
        return list(self._numbers)


class _Records(NamedTuple):
    columns: tuple[np.ndarray[Any, Any], ...]  # beginnings, times, names, lanes, places
    lanes: list[Any]
    names: list[Any]
    places: list[Any]


class TimelineWidget(Widget):
    """A profile's timeline: rows by stream or tenant, search, sums of a selection, what the device waited for.

    profile: of gp.profiling.profile(), whose block has ended; None = the one that ended last, and each that ends from
    then on. Raises InvalidSpecError for anything else and RuntimeError when the front-end bundle has not been built.
    """

    module = "timeline.js"

    def __init__(self, profile: Profile | None = None) -> None:
        if profile is not None and not (isinstance(profile, Profile) and profile.end_ns):
            what = "a profile whose block runs" if isinstance(profile, Profile) else type(profile).__name__
            raise InvalidSpecError(
                f"TimelineWidget: profile is {what}; give that of a `with gp.profiling.profile()` block, after its end",
                "profile",
            )
        self.profile = latest() if profile is None else profile
        self._taken: tuple[Profile, _Records] | None = None
        super().__init__()
        if profile is None:
            subscribe(self._ended)

    def fallback(self) -> dict[str, str]:
        if self.profile is None:
            return {"text/plain": _NONE}
        return {"text/html": self.profile._repr_html_(), "text/plain": str(self.profile)}

    def __repr__(self) -> str:
        return f"TimelineWidget({0 if self.profile is None else len(self.profile.works)} works)"

    def _ended(self) -> None:
        """Another profile has ended: the page asks for it when the kernel is free."""
        self.profile = latest()
        if self.comm is not None:
            self.tell_page({"type": "ended"})

    def _records(self, profile: Profile) -> _Records:
        if self._taken is None or self._taken[0] is not profile:
            self._taken = profile, _records(profile)
        return self._taken[1]

    def _received(self, content: dict[str, Any]) -> bool:
        kind, chunk, profile = content.get("type"), content.get("chunk"), self.profile
        if kind == "view":
            self._page_looks()
            if profile is None:
                self.tell_page({"type": "none", "text": _NONE})
                return True
            records = self._records(profile)
            self.tell_page(
                {
                    "type": "timeline",
                    "count": len(records.columns[0]),
                    "span": max(1, profile.wall_ns),
                    "lanes": records.lanes,
                    "names": records.names,
                    "places": records.places,
                    "notes": notes(profile),
                }
            )
            self._send_still(now=True)
        elif kind == "want" and profile is not None and isinstance(chunk, int) and not isinstance(chunk, bool):
            columns = self._records(profile).columns
            if not 0 <= chunk * CHUNK < len(columns[0]):
                return False
            self.tell_page({"type": "works", "chunk": chunk}, packed(columns, chunk))
        else:
            return False
        return True


def _records(profile: Profile) -> _Records:
    """The works and waits of a profile as columns."""
    items: list[Work | Wait] = [*profile.works, *profile.waits(MIN_WAIT_US)]
    items.sort(key=lambda item: item.begin_ns)
    lanes, names, places = _Table(), _Table(), _Table()
    begins = np.empty(len(items), np.uint64)
    times, name, lane, place = (np.empty_like(begins) for _ in range(4))
    for i, item in enumerate(items):
        begins[i] = max(0, item.begin_ns - profile.begin_ns)
        times[i] = item.end_ns - item.begin_ns
        waits = hasattr(item, "cause")
        name[i] = names.number(item.cause if waits else item.name)  # type: ignore[union-attr]
        lane[i] = lanes.number(
            (item.device, 0, "", 1) if waits else (item.device, item.stream, item.tenant, 0)  # type: ignore[union-attr]
        )
        place[i] = places.number((item.cell, item.line, item.detail if waits else ""))  # type: ignore[union-attr]
    return _Records((begins, times, name, lane, place), lanes.all(), names.all(), places.all())


def packed(columns: Sequence[np.ndarray[Any, Any]], chunk: int) -> bytes:
    """A chunk of columns as the page reads it: beginnings as steps, numbers by significance, compressed."""
    begins, *others = (column[chunk * CHUNK : (chunk + 1) * CHUNK] for column in columns)
    before = columns[0][chunk * CHUNK - 1] if chunk else np.uint64(0)
    steps = np.diff(begins, prepend=before)
    return zlib.compress(b"".join(_planes(column) for column in (steps, *others)))


def _planes(numbers: np.ndarray[Any, Any]) -> bytes:
    """The bytes that each number takes, then all lowest bytes, all second ones, and so on."""
    width = min(_MAX_WIDTH, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    planes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width]
    return bytes([width]) + planes.tobytes()
