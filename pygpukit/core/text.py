"""Quantities as people read them, text for a page, and texts that cannot fail to be told or stored."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit import _core

_MARKUP = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "#x27"}


def human_bytes(count: int) -> str:
    """12 MiB, 1.50 GiB: binary units, at most three significant places."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    digits = 0 if value >= 100 or value.is_integer() else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def escape(text: str) -> str:
    """Text as HTML shows it, whatever is in it: what a reader cannot see, or a page could obey, is written as \\x1b.

    That is control characters but tab, line feed and carriage return, those that turn the direction of writing, line
    and paragraph separators, and halves of surrogate pairs, which no page can carry.
    """
    return text.translate(_shown())


def visible(text: str) -> str:
    """Text for a terminal or a log, whatever is in it: what a terminal would obey, or a reader cannot see, is written
    as \\x1b, as escape() does; a carriage return, too, but before a line feed.
    """
    return text.translate(_unseen()).replace("\r\n", "\n").replace("\r", "\\x0d")


@cache
def _shown() -> dict[int, str]:
    return {**_unseen(), **{ord(mark): f"&{name};" for mark, name in _MARKUP.items()}}


@cache
def _unseen() -> dict[int, str]:
    codes = [*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
    shown = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in [*codes, *range(0xD800, 0xE000)]}
    for kept in "\t\n\r":
        del shown[ord(kept)]
    return shown


def storable(text: str) -> str:
    r"""The text as UTF-8 can hold it: half characters, as os.fsdecode() makes of foreign bytes, become \udcff."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def words_of(error: BaseException) -> str:
    """str(error); where that fails, a sentence that says so."""
    try:
        return str(error)
    except Exception as failed:
        return f"its text could not be made ({type(failed).__name__})"


def human_share(ppm: float) -> str:
    """70 %, 0.25 %: a share of the device, given in parts per million."""
    return f"{ppm / 10_000:g} %"


def task_numbers(task: _core.TaskRecord) -> list[str]:
    """The numbers behind a task's reason, each in the unit of what was asked for: "asked 12 MiB", "position 3"."""
    return [_task_number(task, name, value) for name, value in sorted(task.detail.items())]


def _task_number(task: _core.TaskRecord, name: str, value: float) -> str:
    if name in ("asked", "available"):
        asked = task.detail.get("asked")
        if asked == task.memory_bytes:
            return f"{name} {human_bytes(int(value))}"
        if asked == task.share_ppm:
            return f"{name} {human_share(value)} of the device"
    if name == "estimated_wait_ns":
        return f"about {value / 1e9:.2g} s to wait"
    return f"{name} {value:,}"


def nearest(name: str, known: Iterable[str]) -> str:
    """ "did you mean A? " for the known name that is most like one that is not, else ""."""
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    matches = get_close_matches(name.lower(), lower, 1, 0.6)
    return f"did you mean {lower[matches[0]]}? " if matches else ""
