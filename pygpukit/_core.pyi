"""The compiled core: Rust classes and functions, and `native`, the C++ submodule. Not public; the package wraps it."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from . import _core_native

native = _core_native  # the C++ submodule; there is no file of the stub's name at run time

__version__: str

_Extent = tuple[int, int, int]

class _Identified(Protocol):
    @property
    def id(self) -> str: ...

_TaskId = str | _Identified  # a task is taken wherever its id is

# ---- event ring and counters (docs/seams.md) ----
RECORD_BYTES: int  # 64

def ring_head() -> int:
    """Sequence number that the next record will get."""

def ring_read(since: int, max_records: int = 65536) -> tuple[bytes, int, int]:
    """Records with sequence >= since: (records as bytes, next sequence to ask for, records already overwritten)."""

def ring_push(
    kind: int,
    *,
    device: int = 0,
    stream: int = 0,
    tenant: int = 0,
    name: int = 0,
    a: int = 0,
    b: int = 0,
    c: int = 0,
    cell: int = 0,
    line: int = 0,
) -> int: ...
def device_failed(why: str) -> None:
    """The device of this process answers nothing any more: schedulers reject tasks with these words while that lasts."""

def now_ns() -> int: ...
def intern(text: str) -> int: ...
def name(id: int) -> str: ...
def counters() -> dict[str, int]:
    """launches, host_launches, h2d_bytes, d2h_bytes, d2d_bytes, fills, task_ns (device time of tasks, once measured),
    later_parts (parts of launches that a gate cut, but for the first of each), pageable_buffers and pageable_bytes (host
    memory that was to be pinned and is not)."""

def telemetry_frame(device: int, since: int, since_name: int, max_records: int = 4096) -> tuple[bytes, int, int]:
    """One binary frame (docs/seams.md), and the sequence and name id to ask for next. Pushes one GAUGE record."""

# ---- memory ----
class PoolStats:
    quota: int
    used: int
    cached: int
    available: int
    allocation_count: int
    reuse_count: int
    eviction_count: int
    cudamalloc_count: int
    active_blocks: int
    free_blocks: int
    reserved: int
    spare: int  # of reserved: kept unmapped after eviction
    evicted: int
    pageable: int  # of evicted: in memory that could not be pinned
    pageable_eviction_count: int
    peak_used: int
    restore_count: int
    segment_count: int

class MemoryBlock:
    id: int
    size: int
    device_ptr: int | None
    on_gpu: bool
    on_host: bool
    last_access: float
    def is_available(self) -> bool: ...
    def is_evicted(self) -> bool: ...

class MemoryPool:
    """A pool over the open backend with a hard limit in bytes. `allocate` returns an int id (documented)."""

    quota: int
    used: int
    cached: int
    available: int
    def __init__(self, quota: int, enable_eviction: bool = False) -> None: ...
    def allocate(self, size: int) -> int: ...
    def free(self, block_id: int) -> None: ...
    def touch(self, block_id: int) -> None: ...
    def evict(self, block_id: int) -> None: ...
    def restore(self, block_id: int) -> None: ...
    def write(self, block_id: int, data: bytes, offset: int = 0) -> None: ...
    def read(self, block_id: int, size: int | None = None, offset: int = 0) -> bytes: ...
    def stats(self) -> PoolStats: ...
    def clear(self) -> None: ...
    def trim(self) -> int: ...
    def get_block(self, block_id: int) -> MemoryBlock | None: ...
    def get_block_size(self, block_id: int) -> int | None: ...
    def is_block_on_gpu(self, block_id: int) -> bool: ...
    def get_host_data(self, block_id: int) -> bytes | None: ...
    def set_host_data(self, block_id: int, data: bytes) -> None: ...
    def clear_host_data(self, block_id: int) -> None: ...
    def set_device_ptr(self, block_id: int, device_ptr: int) -> None: ...

def pool_stats(device: int = 0) -> PoolStats:
    """Statistics of the device's default pool."""

def pool_traffic() -> list[tuple[str | None, int, int]]:
    """(tenant, bytes evicted, bytes restored) so far, over the default pools of all devices; "" for what belongs to none, None
    for all tenants that came when there were enough."""

def pool_blocks(device: int = 0) -> list[tuple[int, int, int, int, int, int, int, bool]]:
    """Live blocks of the default pool: (id, address, bytes, tenant, name, cell, line, resident), ordered by address."""

def pool_segments(device: int = 0) -> list[tuple[int, int, bool]]:
    """Segments of the default pool: (address, bytes, mapped), ordered by address."""

def pool_set_limit(device: int, limit_bytes: int) -> None: ...
def pool_trim(device: int = 0) -> int:
    """Release cached memory to the device; returns bytes released."""

def pool_evict(device: int, block: int) -> None: ...
def pool_segment_export(device: int, address: int) -> tuple[int, int, int, int]:
    """The segment that holds address: (file descriptor, segment address, segment bytes, number of the export). The caller closes the
    descriptor. Blocks of the segment stay on the device until pool_end_export()."""

def pool_end_export(device: int, number: int) -> bool:
    """The process that an export was for no longer maps the segment, or has ended. False if the segment is gone already."""

def pool_hit_ns(device: int, nbytes: int, rounds: int) -> tuple[float, float]:
    """Mean nanoseconds of one allocation that hits the default pool's cache, and of one free, timed in Rust. GIL released.
    visited: another thread comes to the pool between any two batches of 64."""

def eviction_ns(device: int, nbytes: int, rounds: int) -> list[tuple[int, int, int, int]]:
    """A round each: nanoseconds of a plain pinned copy to the host, of evicting, of restoring, and of a plain copy back."""

# ---- pinned host memory and transfers ----
class PinnedBuffer:
    """Pinned memory of the process's pool, writable through the buffer protocol; it goes back to the pool with the object."""

    address: int
    nbytes: int
    def __init__(self, nbytes: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def count_pageable(nbytes: int) -> None:
    """Host memory that was to be pinned is pageable: counters()."""

class PinnedStats:
    total_allocated: int
    current_used: int
    peak_used: int
    total_allocations: int
    total_frees: int
    pool_hits: int
    pool_misses: int
    pool_size: int
    pooled_blocks: int
    def hit_rate(self) -> float: ...

class PinnedPoolConfig:
    max_size: int
    enable_pooling: bool
    alignment: int
    def __init__(self, max_size: int = 1073741824, enable_pooling: bool = True, alignment: int = 256) -> None: ...
    def get_size_class(self, size: int) -> int: ...

class PinnedBlock:
    id: int
    host_ptr: int
    size: int
    in_use: bool
    task_id: str | None
    allocated_at: float
    last_access: float

class PinnedMemoryManager:
    """A pool of pinned host memory by block numbers. It pins and unpins itself: nothing is left to the caller."""

    def __init__(self, config: PinnedPoolConfig | None = None) -> None: ...
    @staticmethod
    def with_max_size(max_size: int) -> PinnedMemoryManager: ...
    def can_allocate(self, size: int) -> bool: ...
    def allocate(self, size: int) -> tuple[int, int, bool]: ...
    def register(self, id: int, host_ptr: int, size: int) -> None: ...
    def free(self, id: int) -> tuple[bool, int]: ...
    def associate_task(self, id: int, task_id: _TaskId) -> None: ...
    def get(self, id: int) -> PinnedBlock | None: ...
    def touch(self, id: int) -> None: ...
    def get_blocks_for_task(self, task_id: _TaskId) -> list[PinnedBlock]: ...
    def free_task_blocks(self, task_id: _TaskId) -> list[tuple[bool, int]]: ...
    def stats(self) -> PinnedStats: ...
    def clear_pool(self) -> list[int]: ...
    def clear(self) -> list[int]: ...
    def active_count(self) -> int: ...

def pinned_holds(address: int, nbytes: int) -> bool:
    """Whether pinned memory of this process holds the whole range."""

def pinned_stats() -> PinnedStats:
    """Figures of the process's pool."""

def pinned_trim() -> int:
    """Unpins what the process's pool keeps for reuse; how many blocks."""

class TransferInfo:
    """A transfer at one moment; times on the ring's clock, 0 = not yet."""

    id: int
    direction: str  # H2D D2H D2D
    state: str  # Queued InProgress Completed Failed Cancelled
    nbytes: int
    landed: int
    priority: int
    queued_ns: int
    started_ns: int
    ended_ns: int
    device_ns: int
    error: tuple[int, str] | None

class TransferCore:
    """What gp.memory.TransferEngine stands on: transfers by address. The caller keeps the memory alive until each has ended."""

    number: int
    device: int
    closed: bool
    def __init__(self, device: int, chunk_bytes: int, in_flight_bytes: int) -> None: ...
    def submit(
        self,
        direction: str,
        to: int,
        from_: int,
        nbytes: int,
        priority: int,
        streams: Sequence[int],
        events: Sequence[int],
        after: Sequence[int],
        peer: int = -1,
    ) -> int: ...
    def wait(self, id: int, timeout_s: float | None = None) -> TransferInfo | None: ...
    def ended(self, timeout_s: float) -> list[TransferInfo]:
        """Waits, GIL released, for transfers that have ended: each once."""
    def info(self, id: int) -> TransferInfo | None: ...
    def cancel(self, id: int) -> bool: ...
    def forget(self, id: int) -> bool: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

def close_transfers() -> None:
    """Closes every transfer engine of the process. Called when the interpreter ends."""

class TransferType:
    H2D: TransferType
    D2H: TransferType
    D2D: TransferType

class TransferState:
    Queued: TransferState
    InProgress: TransferState
    Completed: TransferState
    Failed: TransferState
    Cancelled: TransferState
    def is_terminal(self) -> bool: ...

class StreamType:
    Compute: StreamType
    MemcpyH2D: StreamType
    MemcpyD2H: StreamType
    @staticmethod
    def Custom(id: int) -> StreamType: ...
    def to_id(self) -> int: ...

class TransferOp:
    id: int
    transfer_type: TransferType
    src_ptr: int
    dst_ptr: int
    size: int
    state: TransferState
    stream_id: int
    queued_at: float
    started_at: float | None
    completed_at: float | None
    priority: int
    error: str | None
    task_id: str | None
    device_time: float
    def wait_time(self) -> float: ...
    def duration(self) -> float | None: ...
    def bandwidth_gbps(self) -> float | None: ...

class TransferStats:
    total_queued: int
    completed_count: int
    failed_count: int
    total_bytes: int
    h2d_bytes: int
    d2h_bytes: int
    avg_h2d_bandwidth: float
    avg_d2h_bandwidth: float
    pending_count: int
    in_progress_count: int

class AsyncTransferEngine:
    """Copies by bare addresses, which are checked against the pools. A transfer begins by itself."""

    def __init__(self, max_concurrent: int = 4) -> None: ...
    def enqueue_h2d(self, host_ptr: int, device_ptr: int, size: int) -> int: ...
    def enqueue_d2h(self, device_ptr: int, host_ptr: int, size: int) -> int: ...
    def enqueue_d2d(self, src_ptr: int, dst_ptr: int, size: int) -> int: ...
    def enqueue_with_priority(
        self, transfer_type: str, src_ptr: int, dst_ptr: int, size: int, priority: int
    ) -> int: ...
    def get_ready_transfers(self, max_transfers: int) -> list[TransferOp]: ...
    def start_transfer(self, op_id: int) -> bool: ...
    def complete_transfer(self, op_id: int) -> bool: ...
    def fail_transfer(self, op_id: int, error: str) -> bool: ...
    def cancel_transfer(self, op_id: int) -> bool: ...
    def get_operation(self, op_id: int) -> TransferOp | None: ...
    def wait(self, op_id: int, timeout: float | None = None) -> TransferOp: ...
    def stats(self) -> TransferStats: ...
    def get_in_progress_for_stream(self, stream_id: int) -> list[int]: ...
    def has_pending_work(self) -> bool: ...
    def gc(self) -> None: ...
    def clear(self) -> None: ...

# ---- kernel cache ----
class KernelCache:
    """Content-addressed entries: a memory LRU with TTL in front of one-file-an-entry on disk (digest, atomic rename, quarantine)."""

    def __init__(
        self,
        directory: str | None,
        memory_bytes: int = 67108864,
        disk_bytes: int = 1073741824,
        ttl_seconds: float | None = None,
        disk_ttl_seconds: float | None = None,
    ) -> None:
        """ttl_seconds: how long an entry stays in memory. disk_ttl_seconds: how long on disk after its last use. None: for ever."""
    def problem(self) -> str | None:
        """Why the directory asked for is not used; None when it is, or when none was asked for."""
    def take_refusal(self) -> str | None:
        """Why the latest entry that could not be written to the disk was not, once."""
    def get(self, key: bytes, stored: bool = False) -> tuple[bytes, str] | None:
        """(payload, "memory" or "disk"), or None. A damaged file is quarantined and is a miss. `stored` looks past this process's
        memory, for what another process may just have written."""
    def keys(self) -> list[bytes]:
        """The keys on disk; those in memory where there is no disk."""
    def sealed(self, key: bytes) -> bytes | None:
        """An entry with its header and digest, as it lies on disk: what archives hold."""
    @staticmethod
    def open_sealed(sealed: bytes) -> tuple[bytes, bytes]:
        """(key, payload) of a sealed entry, verified. Raises ValueError for anything else."""
    def put(self, key: bytes, payload: bytes) -> None: ...
    def remove(self, key: bytes) -> bool: ...
    def clear(self) -> None: ...
    def stats(self) -> dict[str, int]:
        """memory_hits, disk_hits, misses, puts, evicted, expired, quarantined, memory_entries, memory_bytes, disk_entries, disk_bytes,
        disk_writable (0 or 1), disk_errors."""
    @staticmethod
    def digest(parts: Sequence[bytes]) -> bytes:
        """BLAKE3 of the length-prefixed parts, 32 bytes: the one way to make a key."""

# ---- scheduler ----
class TaskRecord:
    number: int  # unique in the process: `a` of TASK event records
    id: str
    name: str
    phase: str  # Submitted Rejected Queued Admitted Running Suspended Succeeded Failed Cancelled Expired
    reason: str  # closed enum name or ""
    paused: bool  # held back until it is resumed
    detail: dict[str, int | float]  # asked, available, position, estimated_wait_ns ...
    memory_bytes: int
    share_ppm: int
    memory_limit: int | None
    share_limit_ppm: int | None
    policy: str  # Guaranteed Burstable BestEffort
    partition: str  # "" = the default
    device: int | None  # the first that it is on; None while it leaves the choice and waits
    devices: list[int]  # all that it is on, ascending
    priority: int
    submitted_ns: int
    started_ns: int
    finished_ns: int
    launches: int  # that the device was given
    kernels: int  # that it submitted, each of a graph
    transfers: int  # copies that it submitted
    gpu_ns: int
    paced: int  # launches that were held back
    slices: int  # parts that launches were cut into
    asked_ns: int  # so long it had work that was not done, with the device or waiting
    others_ns: int  # of the device's time, what others had meanwhile
    waited_ns: int  # its launches waited for a turn so long
    throttles: int  # their limit held them back so often
    throttled_ns: int  # and so long
    host_ns: int  # of the device time, what its own thread spent in the device's stead
    deadline_ns: int
    error: str
    field: str  # the field at fault when the reason is InvalidSpec, else ""

class Space:
    """The multiprocessors that a task runs on, from its start to its end."""

    handle: int
    serial: int
    device: int
    lane: int
    retired: bool

class TaskStart:
    """What whoever runs a task needs of it to begin."""

    id: str
    number: int
    partition: str  # "" for the default
    devices: list[int]  # that it is on, ascending
    guaranteed: bool  # it is of the class Guaranteed
    memory_limit: int | None
    share_limit_ppm: int | None

class SchedulerCore:
    """The task state table, memory and share ledger, and queue. Thread-safe; no Python is called under its lock."""

    def __init__(
        self,
        total_memory: int,
        total_share_ppm: int = 1000000,
        max_queue: int = 1000,
        max_finished: int = 4096,
        workers: int = 0,
        order: str | None = None,
        admission: str | None = None,
        further_memory: Sequence[int] = (),
        placement: str | None = None,
    ) -> None:
        """total_memory: of device 0; further_memory: of devices 1, 2 and so on. order, admission, placement: of orders(),
        admissions() and placements(); None = the first. InvalidSpecError for another name."""
    @staticmethod
    def orders() -> list[str]: ...
    @staticmethod
    def admissions() -> list[str]: ...
    @staticmethod
    def placements() -> list[str]: ...
    def submit(
        self,
        id: str,
        name: str,
        memory_bytes: int,
        share_ppm: int,
        partition: str = "",
        policy: str | None = None,
        priority: int = 0,
        depends_on: Sequence[str] | None = None,
        deadline_ns: int = 0,
        idempotent: bool = False,
        memory_limit: int | None = None,
        share_limit_ppm: int | None = None,
        run_ns: int = 0,
        retry: tuple[int, int, int] | None = None,
        devices: int | Sequence[int] | None = None,
    ) -> bool:
        """devices: so many, whichever, or those; None = that of its partition. False for a task that is Rejected, with a reason. InvalidSpecError for an id that is empty, too long or taken."""
    def next(self, timeout_s: float) -> TaskStart | None:
        """Waits (GIL released) for an Admitted task in order and marks it Running; None at the timeout."""
    def taken(self) -> list[str]:
        """Ids that next() gave the calling thread and that are not finished."""
    def finish(self, id: str, error: str | None = None, reason: str = "UserError", lost: bool = False) -> None:
        """lost: the worker process that it ran in is gone, and a fresh one may run it again."""
    def charge(
        self,
        id: str,
        launches: int,
        slices: int,
        kernels: int,
        transfers: int,
        gpu_ns: int,
        paced: int,
        asked_ns: int,
        others_ns: int,
        waited_ns: int,
        throttles: int,
        throttled_ns: int,
    ) -> None:
        """Adds what a worker process counted for a task under way to the task's own counters."""
    def offer_processes(self) -> None:
        """Partitions may be of isolation "process" from now on: the caller asks worker_partition() where to run each task."""
    def reservations(self) -> list[dict[str, int]]:
        """By device: device, total_memory, reserved_memory, available_memory, reserved_share_ppm, tasks, running, waiting and
        waiting_wide."""
    def worker_partition(self, partition: str) -> str | None:
        """The id of the partition that tasks of this one are in ("" is the default), if they run in a worker process."""
    def cancel(self, id: str) -> bool: ...
    def pause(self, id: str) -> bool:
        """Holds an unfinished task back until resume(); False when it was paused already. KeyError for an unknown one,
        RuntimeError for one that has ended or runs in a worker process."""
    def resume(self, id: str) -> bool:
        """False when it was not paused. Errors as pause()."""
    def adjust(
        self,
        id: str,
        *,
        priority: int | None = None,
        share_ppm: int | None = None,
        share_limit_ppm: int | None = None,
    ) -> None:
        """Changes an unfinished task; None = as it is. KeyError for an unknown one, RuntimeError for one that has ended,
        InvalidSpecError for what cannot be; nothing changes then."""
    def finished(self, since: int, timeout_s: float, woken: int | None = None) -> tuple[list[TaskRecord], int]:
        """Waits (GIL released) until more than `since` tasks have ended: those, oldest first, and the number to ask with next.
        Empty after a wake(), also after one before the wait when `woken` is what wakes() said before that."""
    def get(self, id: str) -> TaskRecord | None: ...
    def tasks(self) -> list[TaskRecord]: ...
    def stats(self) -> dict[str, int]:
        """submitted, queued, admitted, running, suspended, succeeded, failed, cancelled, rejected, expired,
        reserved_memory, available_memory, reserved_share_ppm."""
    def devices(self) -> list[dict[str, Any]]:
        """What the gates measured, of every scheduler of the process, one dict a device that tasks have launched on: device,
        now_ns, in_flight_ns, tenants {task number: {gpu_ns, joined_ns, shares_ppm of the last 10 ms,
        100 ms and 1 s, waits}}, throttles [(task number, from_ns, until_ns)]."""
    def enter(self, start: TaskStart, tenant: int, device: int) -> tuple[int, int]:
        """What native.enter_context() takes for a task on a device, valid until finish(): the handle of its scheduling
        context, and the account in the device's pool that its blocks count for, 0 when it has no memory limit. tenant:
        interned name. Once for each of its devices."""
    ordinal: int  # of this scheduler in the process: the upper half of its tasks' numbers
    def snapshot(self) -> tuple[int, int, dict[str, int], list[TaskRecord], list[dict[str, int]]]:
        """One moment: (nanoseconds, sequence number of the next event, as stats(), as tasks(), as reservations())."""
    def events(self, since: int, max_records: int, kinds: Sequence[str]) -> tuple[list[tuple[Any, ...]], int, int]:
        """Events from sequence number `since` on: (kind, sequence, t_ns, number, name, ...), as pygpukit.scheduler.events has
        them; the number to ask with next; how many records of any kind were overwritten unread."""
    def conditions(self, id: str) -> list[tuple[str, str, str, str, int]] | None:
        """What is true of a task beside its phase: (type, status, reason, message, nanoseconds of the last change)."""
    def tenants(self) -> list[dict[str, Any]]:
        """What the tasks of each name used since the start (name None: of all names that came when there were enough): tasks,
        requeues, preemptions, launches, slices, gpu_ns, paced, waited_ns, throttles, throttled_ns; and now: waiting,
        position (the best in line, 0 = none), running, shares (of the last 10 ms, 100 ms and 1 s)."""
    def depths(self) -> list[tuple[str, int]]:
        """Tasks in line by partition, "" for the default."""
    def enter_space(self, partition: str, device: int) -> Space | None:
        """The multiprocessors that a task of a partition runs on ("" for the default); leave_space() when its work has
        ended. None while no backend is open."""
    def leave_space(self, space: Space) -> None: ...
    def partitions(self) -> PartitionManager:
        """Its partitions, to read and to change."""
    def wakes(self) -> int:
        """How often wake() was called."""
    def wake(self) -> None:
        """Every wait under way in next() and finished() returns empty-handed."""
    def close(self) -> None:
        """Wakes every waiter; next() returns None and submissions are rejected from then on."""

class ModelContexts:
    """The contexts of several models and what of each device they were promised."""

    def __init__(self) -> None: ...
    def set_budget(self, device: int, bytes: int) -> None:
        """What the contexts of a device may have together. OutOfMemoryError when they were promised more already."""
    def budget(self, device: int) -> int | None: ...
    def held(self, device: int) -> tuple[int, int, int, int]:
        """(bytes held, the most so far, blocks, limit) of all contexts of a device."""
    def create(self, id: str, max_memory: int, share_ppm: int, device: int) -> ModelContext:
        """max_memory 0: no limit of its own. InvalidSpecError names the field; OutOfMemoryError: over the budget."""
    def resize(self, context: ModelContext, max_memory: int | None, share_ppm: int | None) -> tuple[int, int]:
        """None: as it is. (max_memory, share_ppm) from now on. As create(); InvalidSpecError: it holds more than that."""
    def destroy(self, id: str) -> bool: ...
    def ids(self) -> list[str]: ...

class ModelContext:
    """One of them: a tenant of the gate with an account in the pool."""

    number: int  # unique among the tenants of the process
    handle: int  # for native.Session, valid as long as this object
    tenant: int  # interned name
    account: int
    share_ppm: int  # what the gate shares the device out by
    def held(self) -> tuple[int, int, int, int]:
        """(bytes held, the most so far, blocks, limit)."""
    def work(self) -> list[int]:
        """[launches, of those held back, device ns, ns with work that was not done, device ns of others meanwhile, ns
        waited for a turn]."""
    def shares_ppm(self) -> list[int]:
        """Of the device in the last 10 ms, 100 ms and 1 s."""
    def close(self) -> None:
        """It launches and allocates nothing more."""

def scheduling_ns(tenants: int, rounds: int) -> list[tuple[str, float]]:
    """Nanoseconds a call on the task table with a backlog of 1000: submit and next (p50, p99), finish (p50). GIL released."""

def submissions_ns(tenants: int, tasks: int) -> int:
    """Nanoseconds of so many submissions in a row into a new table. GIL released."""

def task_edges() -> list[tuple[str, str, str, str]]:
    """The transition table of task phases: (from, to, group of reasons, when)."""

# ---- slicing ----
SLICE_REASONS: list[str]  # the closed set of UnsliceableError.reason

def slice_ptx(ptx: str, entry: str, host_variables: Sequence[str] = (), newest: tuple[int, int] | None = None) -> str:
    """The module with `entry` alone, which takes its place in the whole grid from one more parameter (pk_slice, 24 bytes).

    host_variables: symbols that the host may write. newest: a later .version is lowered to it. Raises UnsliceableError."""

def slice_plan(grid: _Extent, blocks: int) -> list[tuple[_Extent, _Extent]]:
    """The sub-grids of a grid, each of at most `blocks` blocks, as (first, extent), ascending. ValueError for a zero, and for
    more than 2**20 slices."""

class SliceConfig:
    max_items_per_slice: int
    max_duration_ms: float
    min_slices: int
    max_slices: int
    adaptive: bool
    def __init__(
        self,
        max_items_per_slice: int = 65536,
        max_duration_ms: float = 1.0,
        min_slices: int = 1,
        max_slices: int = 256,
        adaptive: bool = True,
    ) -> None: ...

class SliceInfo:
    kernel_handle: int
    block: _Extent
    shared_mem: int
    slice_id: int
    offset: int
    count: int
    grid: _Extent
    task_id: str | None
    priority: int

class KernelSlice:
    id: int
    offset: int
    count: int
    grid: _Extent
    executed: bool
    exec_time_ms: float | None

class SliceStats:
    total_slices: int
    completed_slices: int
    pending_slices: int
    total_kernels: int
    completed_kernels: int
    pending_kernels: int

class SliceScheduler:
    """Cuts one-dimensional kernels into slices and hands these out in turn; the caller launches them and reports times."""

    def __init__(self, config: SliceConfig | None = None) -> None: ...
    def submit(self, kernel_handle: int, total_items: int, block: _Extent, shared_mem: int) -> int: ...
    def submit_for_task(
        self, task_id: _TaskId, kernel_handle: int, total_items: int, block: _Extent, shared_mem: int, priority: int
    ) -> int: ...
    def get_next_slice(self) -> SliceInfo | None: ...
    def complete_slice(self, exec_time_ms: float) -> None: ...
    def slices(self, kernel: int) -> list[KernelSlice]:
        """Slices of a kernel (the number that submit() gave) that were handed out, in their order."""
    def pending_slices(self) -> int: ...
    def pending_kernels(self) -> int: ...
    def stats(self) -> SliceStats: ...
    def clear(self) -> None: ...
    def config(self) -> SliceConfig: ...

# ---- partitions; the classes beside them are documented and reached through `_pygpukit_rust` ----
class AdmissionConfig:
    max_bandwidth: float
    max_memory: int
    max_pending_tasks: int
    enable_best_effort: bool
    def __init__(
        self, max_memory: int, max_bandwidth: float, max_pending_tasks: int = 1000, enable_best_effort: bool = True
    ) -> None: ...

class AdmissionController:
    def __init__(self, config: AdmissionConfig) -> None: ...
    def try_admit(self, task_id: _TaskId, memory: int, bandwidth: float) -> AdmissionDecision: ...
    def release(self, task_id: _TaskId) -> None: ...
    def stats(self) -> AdmissionStats: ...

class AdmissionDecision:
    estimated_wait_ms: float | None
    rejection_reason: RejectReasonDetails | None
    reason: RejectReason | None
    reserved_memory: int | None
    decision_type: str
    reserved_bandwidth: float | None
    queue_position: int | None
    @staticmethod
    def Admitted() -> AdmissionDecision: ...
    @staticmethod
    def Queued() -> AdmissionDecision: ...
    def is_admitted(self) -> bool: ...
    def is_rejected(self) -> bool: ...
    def is_queued(self) -> bool: ...
    def reject_reason(self) -> RejectReason | None: ...

class AdmissionStats:
    available_bandwidth: float
    rejected_count: int
    queued_count: int
    used_bandwidth: float
    pending_count: int
    available_memory: int
    reserved_memory: int
    reserved_bandwidth: float
    admitted_count: int
    used_memory: int

class Partition:
    id: str
    usage: PartitionUsage
    tasks: list[str]
    name: str
    enabled: bool
    limits: PartitionLimits
    sms: int
    sm_share: float
    sm_switching: bool
    sm_switch_ns: int
    def memory_utilization(self) -> float: ...

class PartitionConfig:
    total_memory: int
    overcommit_ratio: float
    allow_overcommit: bool
    def __init__(
        self, total_memory: int = ..., allow_overcommit: bool = False, overcommit_ratio: float = 1.0
    ) -> None: ...

class PartitionLimits:
    isolation: str
    compute_share: float
    lend: tuple[int, float]
    borrow: tuple[int, float]
    priorities: tuple[int, int]
    weight: int
    bandwidth_share: float
    memory_quota: int
    max_streams: int
    device: int
    def __init__(
        self,
        memory_quota: int = 0,
        compute_share: float = 1.0,
        bandwidth_share: float = 1.0,
        max_streams: int = 16,
        *,
        priorities: tuple[int, int] = ...,
        weight: int = 1,
        isolation: str = ...,
        borrow: tuple[int, float] = ...,
        lend: tuple[int, float] = ...,
        device: int = 0,
    ) -> None: ...
    @staticmethod
    def with_memory(memory_quota: int) -> PartitionLimits: ...
    @staticmethod
    def with_compute(compute_share: float) -> PartitionLimits: ...
    def memory(self, quota: int) -> PartitionLimits: ...
    def compute(self, share: float) -> PartitionLimits: ...
    def bandwidth(self, share: float) -> PartitionLimits: ...

class PartitionManager:
    def __init__(self, config: PartitionConfig | None = None) -> None: ...
    @staticmethod
    def with_memory(total_memory: int) -> PartitionManager: ...
    def create_partition(self, id: str, name: str, limits: PartitionLimits) -> None: ...
    def resize_partition(self, id: str, limits: PartitionLimits) -> None: ...
    def delete_partition(self, id: str) -> Partition: ...
    def get(self, id: str) -> Partition | None: ...
    def assign_task(self, task_id: _TaskId, partition_id: str) -> None: ...
    def get_task_partition(self, task_id: _TaskId) -> Partition | None: ...
    def unassign_task(self, task_id: _TaskId) -> None: ...
    def set_default(self, id: str) -> None: ...
    def default_partition(self) -> Partition | None: ...
    def partition_ids(self) -> list[str]: ...
    def stats(self) -> PartitionStats: ...
    def clear(self) -> None: ...

class PartitionStats:
    available_memory: int
    active_partitions: int
    available_bandwidth: float
    partition_count: int
    total_bandwidth_allocated: float
    total_compute_allocated: float
    total_memory_allocated: int
    available_compute: float

class PartitionUsage:
    unfinished_tasks: int
    memory_used: int
    active_streams: int
    compute_used: float
    total_kernels: int  # submitted so far
    pending_kernels: int  # of those, waiting for their turn
    total_transfers: int
    pending_transfers: int  # of those, waiting for their turn, or not ended in a transfer engine
    compute_time_ms: float

class QosClass:
    Guaranteed: ClassVar[QosClass]
    Burstable: ClassVar[QosClass]
    BestEffort: ClassVar[QosClass]
    def priority(self) -> int: ...
    def can_preempt(self, other: QosClass) -> bool: ...
    def memory_overcommit_ratio(self) -> float: ...
    def bandwidth_ratio(self) -> float: ...

class QosEvaluation:
    reserved_bandwidth: float | None
    reject_reason: str | None
    reserved_memory: int | None
    decision_type: str
    qos_class: QosClass | None
    def is_admitted(self) -> bool: ...
    def is_throttled(self) -> bool: ...
    def is_queued(self) -> bool: ...
    def is_rejected(self) -> bool: ...

class QosPolicy:
    qos_class: QosClass
    @staticmethod
    def guaranteed(memory: int) -> QosPolicy: ...
    @staticmethod
    def burstable(memory_request: int, burst_ratio: float) -> QosPolicy: ...
    @staticmethod
    def best_effort() -> QosPolicy: ...
    def memory_to_reserve(self) -> int: ...
    def bandwidth_to_reserve(self) -> float: ...

class QosPolicyEvaluator:
    def __init__(self, total_memory: int, total_bandwidth: float = 1.0) -> None: ...
    def evaluate(self, task: QosTaskMeta) -> QosEvaluation: ...
    def reserve(self, evaluation: QosEvaluation) -> None: ...
    def release(self, qos_class: QosClass, memory: int, bandwidth: float) -> None: ...
    def stats(self) -> QosStats: ...
    def reset(self) -> None: ...

class QosStats:
    total_memory: int
    guaranteed_bandwidth: float
    available_memory: int
    best_effort_queue: int
    total_bandwidth: float
    available_bandwidth: float
    burstable_memory: int
    guaranteed_memory: int

class QosTaskMeta:
    bandwidth_request: float
    id: str
    memory_request: int
    name: str
    qos_class: QosClass
    memory_limit: int
    burst_ratio: float
    @staticmethod
    def guaranteed(id: str, name: str, memory: int, bandwidth: float = 1.0) -> QosTaskMeta: ...
    @staticmethod
    def burstable(id: str, name: str, memory_request: int, burst_ratio: float) -> QosTaskMeta: ...
    @staticmethod
    def best_effort(id: str, name: str) -> QosTaskMeta: ...
    def effective_priority(self) -> int: ...

class RejectReason:
    InsufficientMemory: ClassVar[RejectReason]
    InsufficientBandwidth: ClassVar[RejectReason]
    QueueFull: ClassVar[RejectReason]
    UnsatisfiableDependencies: ClassVar[RejectReason]
    Custom: ClassVar[RejectReason]

class RejectReasonDetails:
    requested_memory: int | None
    reason_type: str
    available_memory: int | None
    text: str
    def message(self) -> str: ...

class ResourceRequirements:
    memory_request: int
    memory_limit: int
    bandwidth_limit: float
    bandwidth_request: float
    def __init__(
        self,
        memory_request: int,
        memory_limit: int | None = None,
        bandwidth_request: float = 0.0,
        bandwidth_limit: float = 1.0,
    ) -> None: ...
    @staticmethod
    def guaranteed(memory: int) -> ResourceRequirements: ...
    @staticmethod
    def burstable(memory_request: int, burst_ratio: float) -> ResourceRequirements: ...
    @staticmethod
    def best_effort() -> ResourceRequirements: ...

class Scheduler:
    total_memory: int | None
    sched_tick_ms: float
    window_ms: float
    def __init__(
        self, total_memory: int | None = None, sched_tick_ms: float = 10.0, window_ms: float = 100.0
    ) -> None: ...
    def submit(self, task: TaskMeta) -> str: ...
    def admit(self, task: TaskMeta) -> AdmissionDecision: ...
    def evaluate_admission(self, task: TaskMeta) -> AdmissionDecision: ...
    def admission_stats(self) -> AdmissionStats: ...
    def get_runnable_tasks(self, max_tasks: int = 1) -> list[str]: ...
    def should_run(self, task_id: _TaskId) -> bool: ...
    def start_task(self, task_id: _TaskId) -> bool: ...
    def complete_task(self, task_id: _TaskId) -> bool: ...
    def fail_task(self, task_id: _TaskId, error: str) -> bool: ...
    def cancel_task(self, task_id: _TaskId) -> bool: ...
    def get_task(self, task_id: _TaskId) -> TaskMeta | None: ...
    def get_task_state(self, task_id: _TaskId) -> TaskState | None: ...
    def task_stats(self, task_id: _TaskId) -> TaskStats | None: ...
    def stats(self) -> SchedulerStats: ...
    def clear(self) -> None: ...

class SchedulerStats:
    total_submitted: int
    pending_count: int
    cancelled_count: int
    completed_count: int
    reserved_memory: int
    running_count: int
    avg_wait_time: float
    avg_exec_time: float
    failed_count: int
    available_memory: int

class TaskMeta:
    priority: int
    state: TaskState
    started_at: float | None
    id: str
    name: str
    submitted_at: float
    completed_at: float | None
    memory_estimate: int
    dependencies: list[str]
    error: str | None
    policy: TaskPolicy
    def __init__(
        self,
        id: str,
        name: str,
        memory_estimate: int = 0,
        priority: int = 0,
        dependencies: Sequence[_TaskId] | None = None,
    ) -> None: ...
    def is_terminal(self) -> bool: ...
    def elapsed(self) -> float: ...
    def duration(self) -> float | None: ...

class TaskPolicy:
    Fifo: ClassVar[TaskPolicy]
    Sjf: ClassVar[TaskPolicy]
    Priority: ClassVar[TaskPolicy]

class TaskState:
    Pending: ClassVar[TaskState]
    Running: ClassVar[TaskState]
    Completed: ClassVar[TaskState]
    Failed: ClassVar[TaskState]
    Cancelled: ClassVar[TaskState]

class TaskStats:
    id: str
    state: TaskState
    name: str
    wait_time: float
    memory_used: int
    exec_time: float

def isolation_table() -> str:
    """What each isolation level keeps apart, as a Markdown table."""

# ---- documented `_pygpukit_rust` names are re-exported by the top-level module of that name ----
def __getattr__(name: str) -> Any: ...
