"""Activity: kernels, copies and fills of other libraries, by CUPTI's activity records, which cupti-python hands out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.profiling.waiting import COPIES, OTHER_LIBRARIES
from pygpukit.profiling.work import Work

_INSTALL = 'python -m pip install "cupti-python>=13,<14"'
_BUFFER_BYTES = 8 << 20
_KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET")
_DIRECTIONS = {"HTOD": 0, "HTOA": 0, "DTOH": 1, "ATOH": 1}  # in COPIES; all others stay on devices
_ON_DEVICE, _FILL = 2, 3
_SLACK_NS = 5_000  # by which CUPTI's clock and that of events may differ
_active: Activity | None = None


class Record(NamedTuple):
    """The fields of a record of CUPTI that a Work has, its times in nanoseconds on CUPTI's clock."""

    name: str
    kind: str
    begin_ns: int
    end_ns: int
    device: int
    stream: int
    blocks: int
    threads: int
    nbytes: int


class Activity:
    """Records what CUPTI sees of this process, from the beginning of its `with` block to the end.

    CUPTI has one reader in a process. Raises ModuleNotFoundError without cupti-python, GPUError where CUPTI refuses.
    """

    def __init__(self) -> None:
        try:
            self._cupti: Any = import_module("cupti.cupti")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "cupti":
                raise  # it is there, but what it needs is not
            raise ModuleNotFoundError(f"profile(cupti=True) needs cupti-python: {_INSTALL}", name="cupti") from None
        self._records: list[Record] = []
        self._offset_ns = 0
        self._enabled: list[Any] = []

    def __enter__(self) -> Activity:
        global _active
        if _active is not None:
            raise GPUError("profile(cupti=True): another profile records CUPTI's activity; end it first")
        self._ask("registering for records", self._cupti.activity_register_callbacks, _buffer, self._completed)
        _active = self
        try:
            self._offset_ns = min(self._clock_offset() for _ in range(5))
            for name in _KINDS:
                kind = self._cupti.ActivityKind[name]
                self._ask(f"recording {name}", self._cupti.activity_enable, kind)
                self._enabled.append(kind)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Record no more. The device is idle by now."""
        global _active
        if _active is not self:
            return
        try:
            self._ask("handing records out", self._cupti.activity_flush_all, 0)
        finally:
            for kind in self._enabled:
                self._ask("ending", self._cupti.activity_disable, kind)
            self._enabled.clear()
            _active = None

    def works(self, ours: Sequence[Work], begin_ns: int, end_ns: int) -> list[Work]:
        """The works of other libraries from begin_ns to end_ns. ours: those that profile() recorded itself.

        A kernel is ours by its symbol, a copy or fill where one of ours with as many bytes was under way.
        """
        symbols = native.kernel_symbols()
        transfers = _Transfers(ours)
        works = []
        for record in sorted(self._records, key=lambda one: one.begin_ns):
            begin, end = record.begin_ns + self._offset_ns, record.end_ns + self._offset_ns
            if end < begin_ns or begin > end_ns:
                continue
            if record.name in symbols if record.kind == "kernel" else transfers.take(record, (begin + end) // 2):
                continue
            name, where = native.demangled(record.name), (record.device, record.stream, OTHER_LIBRARIES)
            sizes = record.blocks, record.threads, record.nbytes
            works.append(Work(name, record.kind, begin, max(begin, end), *where, "", 0, 1, *sizes))
        return works

    def _completed(self, activities: Iterable[Any]) -> None:
        """Called by CUPTI on a thread of its own, with records that are gone when it returns."""
        for one in activities:
            if one.end and (record := self._record(one)) is not None:
                self._records.append(record)

    def _record(self, one: Any) -> Record | None:
        kinds = self._cupti.ActivityKind
        where = one.start, one.end, one.device_id, one.stream_id
        if one.kind in (kinds.CONCURRENT_KERNEL, kinds.KERNEL):
            blocks, threads = prod((one.grid_x, one.grid_y, one.grid_z)), prod((one.block_x, one.block_y, one.block_z))
            return Record(one.name, "kernel", *where, blocks, threads, 0)
        if one.kind in (kinds.MEMCPY, kinds.MEMCPY2):
            direction = _DIRECTIONS.get(self._cupti.ActivityMemcpyKind(one.copy_kind).name, _ON_DEVICE)
            return Record(COPIES[direction], "copy", *where, 0, 0, one.bytes)
        if one.kind == kinds.MEMSET:
            return Record(COPIES[_FILL], "fill", *where, 0, 0, one.bytes)
        return None

    def _clock_offset(self) -> int:
        """Nanoseconds from CUPTI's clock to that of records, at most."""
        theirs = self._ask("reading its clock", self._cupti.get_timestamp)
        return int(_core.now_ns() - theirs)

    def _ask(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            raise GPUError(
                f"profile(cupti=True): CUPTI failed while {what}: {error}; another profiler of this process, such as "
                "PyTorch's or Nsight, may hold it, and its library must fit the driver"
            ) from error


class _Transfers:
    """Copies and fills of ours, each of which takes one record of CUPTI's."""

    def __init__(self, ours: Sequence[Work]) -> None:
        self._left: dict[tuple[int, str, int], deque[Work]] = {}
        for work in ours:
            if work.kind in ("copy", "fill"):
                self._left.setdefault((work.device, work.kind, work.nbytes), deque()).append(work)

    def take(self, record: Record, middle_ns: int) -> bool:
        """True where one of ours was under way then, which is used up. Records come in the order of their begin."""
        works = self._left.get((record.device, record.kind, record.nbytes), deque())
        while works and works[0].end_ns + _SLACK_NS < middle_ns:
            works.popleft()
        if not works or works[0].begin_ns - _SLACK_NS > middle_ns:
            return False
        works.popleft()
        return True


def _buffer() -> tuple[int, int]:
    """Bytes of a buffer that CUPTI asks for, and the records in it at most: as many as fit."""
    return _BUFFER_BYTES, 0
