"""The compiled core: Rust classes and functions, and `native`, the C++ submodule. Not public; the package wraps it."""

from collections.abc import Sequence
from typing import Any

from . import _core_native

native = _core_native  # the C++ submodule; there is no file of the stub's name at run time

__version__: str

_Extent = tuple[int, int, int]

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
def now_ns() -> int: ...
def intern(text: str) -> int: ...
def name(id: int) -> str: ...
def counters() -> dict[str, int]:
    """launches, host_launches, h2d_bytes, d2h_bytes, d2d_bytes, fills."""

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
    evicted: int
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

def pool_blocks(device: int = 0) -> list[tuple[int, int, int, int, int, int, int, bool]]:
    """Live blocks of the default pool: (id, address, bytes, tenant, name, cell, line, resident), ordered by address."""

def pool_segments(device: int = 0) -> list[tuple[int, int, bool]]:
    """Segments of the default pool: (address, bytes, mapped), ordered by address."""

def pool_set_limit(device: int, limit_bytes: int) -> None: ...
def pool_trim(device: int = 0) -> int:
    """Release cached memory to the device; returns bytes released."""

def pool_evict(device: int, block: int) -> None: ...
def pool_segment_export(device: int, address: int) -> tuple[int, int, int]:
    """The segment that holds address: (file descriptor, segment address, segment bytes). The caller closes the descriptor."""

def pool_hit_ns(device: int, nbytes: int, rounds: int) -> tuple[float, float]:
    """Mean nanoseconds of one allocation that hits the default pool's cache, and of one free, timed in Rust. GIL released."""

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
    detail: dict[str, int | float]  # asked, available, position, estimated_wait_ns ...
    memory_bytes: int
    share_ppm: int
    policy: str  # Guaranteed Burstable BestEffort
    priority: int
    submitted_ns: int
    started_ns: int
    finished_ns: int
    launches: int
    gpu_ns: int
    paced: int  # launches that were held back
    waited_ns: int  # they waited for a turn so long
    throttled_ns: int  # their limit held them back so long
    deadline_ns: int
    error: str
    field: str  # the field at fault when the reason is InvalidSpec, else ""

class SchedulerCore:
    """The task state table, memory and share ledger, and queue. Thread-safe; no Python is called under its lock."""

    def __init__(
        self, total_memory: int, total_share_ppm: int = 1000000, max_queue: int = 1000, max_finished: int = 4096
    ) -> None: ...
    def submit(
        self,
        id: str,
        name: str,
        memory_bytes: int,
        share_ppm: int,
        policy: str,
        priority: int = 0,
        depends_on: Sequence[str] = (),
        deadline_ns: int = 0,
        idempotent: bool = False,
    ) -> TaskRecord:
        """The task's record, which may be Rejected with a reason. InvalidSpecError for an id that is empty, too long or taken."""
    def next(self, timeout_s: float) -> str | None:
        """Waits (GIL released) for an Admitted task in order, marks it Running, returns its id; None at the timeout."""
    def finish(self, id: str, error: str | None = None, reason: str = "UserError") -> None: ...
    def cancel(self, id: str) -> bool: ...
    def finished(self, since: int, timeout_s: float) -> tuple[list[TaskRecord], int]:
        """Waits (GIL released) until more than `since` tasks have ended: those, oldest first, and the number to ask with next."""
    def get(self, id: str) -> TaskRecord | None: ...
    def tasks(self) -> list[TaskRecord]: ...
    def stats(self) -> dict[str, int]:
        """submitted, queued, admitted, running, suspended, succeeded, failed, cancelled, rejected, expired,
        reserved_memory, available_memory, reserved_share_ppm."""
    def devices(self) -> list[dict[str, Any]]:
        """What the gates measured, of every scheduler of the process, one dict a device that tasks have launched on: device,
        now_ns, in_flight_ns, tenants {task number: {gpu_ns, joined_ns, shares_ppm of the last 10 ms,
        100 ms and 1 s, waits}}, throttles [(task number, from_ns, until_ns)]."""
    def context(self, id: str) -> int:
        """Opaque scheduling-context handle of a task for native.enter_context()."""
    def wake(self) -> None:
        """Every wait under way in next() and finished() returns empty-handed."""
    def close(self) -> None:
        """Wakes every waiter; next() returns None and submissions are rejected from then on."""

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
        self, task_id: str, kernel_handle: int, total_items: int, block: _Extent, shared_mem: int, priority: int
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

# ---- documented `_pygpukit_rust` names are re-exported by the top-level module of that name ----
def __getattr__(name: str) -> Any: ...
