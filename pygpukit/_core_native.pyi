"""Stub of `pygpukit._core.native`, the C++ submodule (there is no file of this name at run time)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from pygpukit._core import Space
from pygpukit.array.array import GPUArray

# ---- backend ----
def cuda_probe() -> str | None:
    """None when a CUDA driver with a supported device answers; else one sentence with the reason."""

def open_backend(name: str) -> None:
    """Open "cuda" or "sim" for the process. Raises DriverError with the reason. A second call with the same name does nothing."""

def backend_name() -> str | None: ...
def device_count() -> int: ...
def device_info(device: int) -> dict[str, Any]:
    """Every field of pk_device_info by its C name."""

def memory_info() -> tuple[int, int]:
    """(free, total) bytes as the device says."""

def device_counters() -> dict[str, int]:
    """What the device itself saw, counted apart from the pool and the launch function: on sim physical_bytes, physical_created_bytes, launches, host_launches; on cuda empty."""

def waited() -> dict[int, int]:
    """By stream id: when the last successful wait for it began, on the ring's clock; earlier work is done."""

def take_device_output() -> str:
    """What kernels printed on the simulated device since the last call. On cuda "": the driver writes it to stdout now."""

def set_device(device: int) -> None: ...
def current_device() -> int: ...

# ---- dtypes: codes in native/include/pygpukit/dtype.h ----
def register_dtypes(table: Mapping[Any, int], objects: Sequence[Any], resolve: Callable[[Any], int]) -> None:
    """Set once by core/dtypes.py: accepted spellings -> code, code -> DataType object, and the fallback for other spellings."""

def register_array_type(cls: type) -> None: ...

# ---- arrays ----
class ArrayBase:
    """Storage view: address, shape, strides, dtype. GPUArray (array/array.py) is the one subclass."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: Any  # DataType
    dtype_code: int
    ndim: int
    size: int
    itemsize: int
    nbytes: int
    device: int
    device_ptr: int  # restores an evicted block first
    block: int  # pool block id, 0 for none
    offset: int  # bytes from the storage's start
    storage_nbytes: int
    stream_id: int
    resident: bool
    last_use_ns: int  # when a launch or copy last used the storage, on the ring's clock; 0 for foreign memory
    name: str  # owner name; settable
    __weakref__: Any
    def is_contiguous(self) -> bool: ...

def empty(
    shape: int | Sequence[int], dtype: Any = "float32", order: str | None = "C", *, device: Any = None
) -> GPUArray:
    """A new C-contiguous array with undefined contents on the current device and stream."""

def shorten(array: ArrayBase, count: int) -> None:
    """Makes a 1-D array shorter, in place; the memory behind its first elements goes back to the pool. ValueError unless the array is
    contiguous and the only one of its memory."""

def view(array: ArrayBase, shape: Sequence[int], strides: Sequence[int], offset: int, dtype: Any = None) -> GPUArray:
    """Another view of the same storage; offset in bytes from the storage's start. Bounds are checked."""

def copy_from_host(dst: ArrayBase, src: Any) -> None:
    """Contiguous dst <- C-contiguous buffer of dst.nbytes; returns when src may be reused. Interruptible, GIL released."""

def copy_to_host(dst: Any, src: ArrayBase) -> None:
    """Writable C-contiguous buffer <- contiguous src; returns when dst holds the data. Interruptible, GIL released."""

def copy(dst: ArrayBase, src: ArrayBase) -> None:
    """Contiguous to contiguous, same nbytes, stream order, asynchronous."""

def fill(dst: ArrayBase, pattern: bytes) -> None:
    """Contiguous dst filled with a 1-, 2-, 4-, 8- or 16-byte element pattern, stream order, asynchronous."""

def host_buffer(array: ArrayBase) -> memoryview:
    """sim only: the storage's bytes. Valid only inside a host launch."""

def host_launch(name: str, fn: Callable[[], None], arrays: Sequence[ArrayBase]) -> None:
    """sim only: fn() in stream order through the one launch function. Runs on the calling thread once the stream is idle."""

def host_products(x: Any, w: Any, out: Any, kind: str = ...) -> None:
    """out = x @ w.T on the host: x (R, K) float32, w (N, K) float32, float16 or bfloat16 (as uint16), out (R, N) float32, C-contiguous.
    kind: of w's blocks, as GGUF calls it, uint8 (N, bytes of a row).
    The order of additions depends on K alone: the same bits on any number of rows, threads and processors. GIL released."""

def host_linear(x: Any, out: Any, parts: Any, bias: Any = ..., norm: Any = ..., after: str = ...) -> None:
    """sim only, a host launch: out = after(norm(x) W^T + bias), all float32 but W. parts of W: (kind, array) below each other, kind as
    GGUF calls it, uint8 (rows, bytes of a row) for blocks. norm: (weight, bias or None, epsilon, centered) or None. The bits of host_products()
    with W's values."""

def host_place(
    qkv: Any, positions: Any, slots: Any, k: Any, v: Any, tables: Any = ..., q_norm: Any = ..., k_norm: Any = ...
) -> None:
    """sim only, a host launch: queries (in place) and keys turned by tables of (cos, sin), keys and values into the cache."""

def host_attention(
    qkv: Any,
    positions: Any,
    slots: Any,
    k: Any,
    v: Any,
    out: Any,
    scale: float,
    window: int = ...,
    cap: float = ...,
    sinks: Any = ...,
    chunk: int = ...,
) -> None:
    """sim only, a host launch: what rows, whose keys are in the cache already, see of it, each up to its own position. sinks: float32
    (heads,), scores that take their part of the weights and have no value. chunk: a row sees the keys from the last multiple of it on; 0: all."""

def host_attend(
    q: Any,
    positions: Any,
    slots: Any,
    k: Any,
    v: Any,
    out: Any,
    scale: float,
    window: int = ...,
    cap: float = ...,
    sinks: Any = ...,
    chunk: int = ...,
) -> None:
    """As host_attention(), at once, on NumPy's float32 memory: q and out (R, heads * dim), slots (R, blocks). GIL released."""

def host_rows(numbers: Any, part: Any, out: Any) -> None:
    """sim only, a host launch: out[i] = row numbers[i] of a weight, (kind, array), as float32."""

def host_kernels() -> str:
    """Which instructions the host computes with: avx512, avx2 or plain."""

def host_threads() -> int:
    """Threads that it computes with."""

# ---- streams and events ----
class Stream:
    handle: int
    id: int
    priority: int
    def __init__(self, priority: int = 0, whole: bool = False) -> None:
        """whole: on the whole device, wherever the thread's other streams run."""
    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def wait_event(self, event: Event) -> None: ...

class Event:
    handle: int
    timing: bool
    def __init__(self, timing: bool = True) -> None: ...
    def record(self, stream: Stream | None = None) -> None: ...
    def query(self) -> bool: ...
    def synchronize(self) -> None: ...
    def elapsed_ms(self, end: Event) -> float: ...

def default_stream() -> Stream: ...
def current_stream() -> Stream: ...
def set_current_stream(stream: Stream | None) -> None:
    """For the calling thread; None = the default stream."""

def set_space(space: Space | None) -> None:
    """Where streams that the calling thread makes from now on run; None = the whole device. The caller keeps it."""

def busy_streams() -> list[int]:
    """Ids of the streams of the current device that have work; 0 is the default stream. Opens and waits for nothing."""

def synchronize() -> None:
    """Wait for every stream of the current device. Interruptible, GIL released."""

def external_stream(handle: int, owner: Any) -> Stream:
    """Another library's stream; owner keeps it alive. The one that is there when the handle is known already."""

def order_streams(first: int, then: int) -> None:
    """By handle: work queued on `then` from now on starts after what is queued on `first`. Nothing waits here."""

# ---- peers ----
def copy_peer(dst: ArrayBase, src: ArrayBase) -> None:
    """Copies a dense array to one on another device, in the order of both sides' streams; straight where the source's
    device can access the other's memory, which is enabled."""

def peer_info(device: int, peer: int) -> dict[str, Any]:
    """access, enabled; atomics and performance_rank (-1: unknown), bytes_per_s and latency_s (0: unknown)."""

def peer_enable(device: int, peer: int) -> None:
    """The device may read and write the peer's memory from now on."""

def peer_reaches(device: int, peer: int) -> bool:
    """Whether copies go straight; enables access where there is any."""

def peer_traffic(device: int, peer: int) -> tuple[int, int, int]:
    """Copies so far, bytes without the host, and bytes by way of it."""

def sim_fail_link(from_: int, to: int, copies: int = 0) -> None:
    """The copy after so many more over a link of simulated devices fails."""

# ---- asynchronous transfers ----
def begin_transfer(array: ArrayBase, stream: Stream | None = None) -> tuple[int, int, list[int]]:
    """Pins a contiguous array for a transfer: (address, bytes, handles of streams whose work so far comes first). Waits for earlier
    transfers of the array to be issued. End it with unpin()."""

def note_transfer(array: ArrayBase, engine: int, transfer: int) -> None:
    """Later uses of the array's bytes come after this transfer."""

# ---- DLPack ----
def dlpack_export(
    array: ArrayBase, device_type: int, versioned: bool, copied: bool, stream: int, host: Any = None
) -> Any:
    """A capsule over the array, which stays pinned, or over `host`, a copy of its bytes. stream: the consumer's handle, -1 = no ordering."""

def dlpack_import(
    capsule: Any,
) -> tuple[Any, tuple[int, int], int, int, tuple[int, ...], tuple[int, ...], int, Any, bool]:
    """(keeper, (device type, index), lowest address, bytes, shape, strides, first element's offset, dtype, read-only), strides and offset
    in bytes; the capsule is taken. Raises BufferError, and then leaves it."""

def host_memory(address: int, nbytes: int) -> memoryview:
    """Host memory by address, read-only; the caller keeps it alive."""

# ---- modules and kernels ----
class Module:
    def __init__(self, image: bytes) -> None: ...
    def function(self, name: str) -> Function: ...
    def global_(self, name: str) -> tuple[int, int]:
        """(address, bytes)."""

def assemble_ptx(text: bytes) -> bytes:
    """PTX that ends in its only NUL as a CUBIN for the current device. GIL released, and launches of other threads go on meanwhile.
    Raises DriverError with the compiler's log, on "sim" that it is not supported."""

def next_wanted_slices(timeout_s: float) -> int: ...
def set_slices(function: int, variant: int) -> None: ...

class Function:
    name: str
    handle: int
    info: dict[str, int]  # fields of pk_function_info
    def param_sizes(self) -> list[int] | None: ...
    def occupancy(self, block_threads: int, shared_bytes: int = 0) -> int: ...

class Kernel:
    """A function with its parameter plan. params: (name, kind, dtype_code, bytes) with kind "pointer" (dtype_code -1 = void*),
    "scalar" or "struct" (any bytes-like object of exactly `bytes`)."""

    name: str
    def __init__(self, function: Function, name: str, params: Sequence[tuple[str, str, int, int]]) -> None: ...
    def bind(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int = 0,
        stream: Stream | None = None,
        flags: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> BoundKernel: ...

class BoundKernel:
    """Vectorcall launcher: positional or keyword arguments; KernelArgumentError names the parameter before anything is launched."""
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...

class DenseCall:
    """Element-wise work on dense operands of one shape and type, straight to the launch function."""
    def __init__(self, operands: int) -> None: ...
    def __call__(self, *operands_and_out: Any) -> GPUArray | None:
        """The result; None when the operands are not plain, or no kernel is known for them."""

    def learn(self, form: int, operand_dtype: int, kernel: Kernel, result_dtype: int, elements: int) -> None:
        """The kernel for operands of a type: form 0 arrays, 1 and 2 a number on the right and left; elements a thread."""

class Prepared:
    """A function of arrays whose calls are worked out once for each signature, then only done."""
    def __init__(self, function: Callable[..., Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def supplied(array: GPUArray, function: Callable[[], GPUArray]) -> GPUArray:
    """The array, which function() gives: a prepared call asks it again each time."""

def prepare_calls(wanted: bool | None) -> None:
    """Whether calls are prepared; None: on devices, not on the simulated one."""

def prepared_calls() -> dict[str, int]:
    """How many prepared calls are held, the most that can be, and how often one was used."""

def forget_prepared() -> None:
    """Forget all prepared calls."""

# ---- graphs ----
class DeviceArray:
    """Memory in the device's own layout, for textures and surfaces; the pool counts it for its owner.

    Numbers are those of native/include/pygpukit/driver.h. Raises OutOfMemoryError, DriverError."""

    nbytes: int
    def __init__(
        self, extents: tuple[int, int, int], format: int, channels: int, flags: int, levels: int, name: str
    ) -> None: ...
    def copy(self, array: ArrayBase, level: int, into: bool) -> None:
        """All of a level from a dense array of as many bytes, or to it, on the current stream."""

class TextureReading:
    """How a texture reads: pk_texture in driver.h."""

    def __init__(
        self,
        flags: int,
        filter: int,
        mipmap_filter: int,
        address_modes: tuple[int, int, int],
        levels: tuple[float, ...],
        border: tuple[float, ...],
    ) -> None: ...

class DeviceObject:
    """A texture or surface as kernels take it: kept alive until what was launched with it is done."""

    handle: int
    """0 once it was closed."""
    device: int
    @overload
    def __init__(self, array: DeviceArray, reading: TextureReading) -> None: ...
    @overload
    def __init__(
        self, array: ArrayBase, format: int, channels: int, extents: tuple[int, int, int], reading: TextureReading
    ) -> None: ...
    @overload
    def __init__(self, array: DeviceArray, level: int) -> None: ...
    def close(self) -> None:
        """Destroy it once the work that was launched with it is done. Raises GPUError while a graph holds it."""

class Graph:
    """Work captured from a stream."""

    launches: int
    steps: int
    arrays: list[GPUArray]
    def finish(self) -> None:
        """End the capture."""

    def launch(self, stream: Stream | None = None) -> None: ...
    def run(self, stream: Stream | None = None) -> None:
        """Each step by itself, as without a capture."""

    def set(self, name: str, value: Any) -> int:
        """Another value for the parameter of that name in every launch that has one; returns how many."""

def capture_begin(stream: Stream) -> Graph:
    """From now on work for the stream goes into the graph. GPUError for the default stream and one captured already."""

def release_quarantine() -> bool:
    """Free the blocks that wait because checked kernels exist; False when none did."""

def is_capturing() -> bool:
    """Whether the current stream is captured."""

# ---- NVRTC ----
def nvrtc_open(candidates: Sequence[str]) -> tuple[str, tuple[int, int]]:
    """Open the first candidate that loads: (path, version). Raises NvrtcError listing what was tried."""

def nvrtc_compile(
    source: str, name: str, options: Sequence[str], headers: Mapping[str, str], name_expressions: Sequence[str]
) -> tuple[int, str, bytes, bytes, dict[str, str], bytes]:
    """(status, log, cubin, ptx, lowered names, Tile IR); status 0 = compiled. GIL released, interruptible; safe from several threads."""

def nvrtc_architectures() -> list[int]:
    """Compute capabilities that the open NVRTC compiles for, as 10 * major + minor, ascending; empty when none is open."""

def nvrtc_install_headers(folder: str) -> None:
    """Have the open NVRTC write its bundled CUDA headers into a folder. GIL released. Raises NvrtcError with the reason."""

# ---- times of launches ----
class CellTime:
    """Times what is launched outside tasks, from now until end(). They nest: a launch belongs to all that are open."""

    def __init__(self) -> None: ...
    def end(self) -> None: ...
    def read(self) -> tuple[int, int, bool, bool]:
        """(nanoseconds that the device was busy, launches in them, whether more is to come, whether it is a lower bound)."""

class Trace:
    """Keeps at most `works` of what is launched outside tasks, each timed by itself, from now until end(). Waits for the device once."""

    def __init__(self, works: int) -> None: ...
    def end(self) -> None: ...
    def read(self) -> tuple[bytes, int, bool]:
        """(records that came since the last call, works that are not among them so far, whether more is to come).

        A record has 72 bytes: kind and device (u16), stream, tenant, name (u32), a, b, c (u64), cell, line (u32) as in the
        ring, then begin_ns and end_ns on the ring's clock and how many launches it is (u64).
        """

def set_launch_timing(mode: str) -> None:
    """'on', 'exact' (two events a launch) or 'off', for all that CellTime times. ValueError for another word."""

def launch_timing() -> str: ...
def enter_plugin(name: str) -> int:
    """Records of what this thread launches name this plugin, too, until leave_plugin() of what is returned."""

def leave_plugin(before: int) -> None:
    """Records of this thread name the plugin before, or none, again."""

def kernel_symbols() -> set[str]:
    """Symbols of all kernels that were looked up in this process, in modules loaded here."""

def demangled(symbol: str) -> str:
    """A C++ symbol as it was declared; anything else as it is."""

def measured_launches() -> int:
    """How many launches of tasks have their time in the counter task_ns, now or later."""

# ---- owners and scheduling context ----
def set_cell(cell: int, filename: str | None) -> None:
    """Current notebook cell (interned id) and its code filename: allocations take cell and line from here. (0, None) clears."""

def set_tenant(tenant: int) -> None: ...
def enter_context(context: int, account: int) -> None:
    """Make a scheduling context active on this thread: every launch passes the gate, and what is allocated counts for the
    account of the device's pool. 0 = none."""

# ---- sessions of execution contexts ----
class Session:
    """What an execution context gives to code in it. keeper keeps what `context` points to."""

    open: bool
    def __init__(
        self, name: str, stream: Stream, device: int, tenant: int, account: int, context: int, keeper: Any
    ) -> None: ...
    def enter(self) -> None:
        """The running contextvars.Context is in it from now on. ContextDestroyedError when it is closed."""
    def leave(self) -> None:
        """Back to before enter(). GPUError when another session was entered last."""
    def inside(self) -> bool: ...
    def close(self) -> None: ...

class SessionFrame:
    """One entry into a session."""

def in_session() -> bool:
    """Whether the running code is in any session."""

def swap_session(frame: SessionFrame | None) -> SessionFrame | None:
    """The frame that code is in from now on, None for no session; returns the one that it was in."""

class Ticket:
    """What becomes of the commands of one dispatch()."""

    state: str  # Pending, Running, Completed, Failed, Cancelled
    error: str
    exec_ns: float | None
    def done(self) -> bool: ...
    def wait(self) -> None:
        """Interruptible, GIL released. Raises DriverError for a fault."""
    def cancel(self) -> bool: ...
    def fail(self, why: str) -> None: ...

def dispatch(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Ticket:
    """Calls, in a session; every command that the call gives to the gate belongs to the ticket."""

# ---- foreign memory (worker process) ----
def pin(array: ArrayBase) -> None:
    """Bring the array's block back if it was evicted and keep it on the device until as many unpin() calls."""

def unpin(array: ArrayBase) -> None: ...
def import_segment(fd: int, nbytes: int) -> int:
    """Map another process's exported segment on the current device; its address. The descriptor stays the caller's."""

def release_segment(address: int) -> None:
    """Wait for the device, then unmap and release. ValueError for an address that import_segment did not return."""

def wrap(address: int, nbytes: int, shape: int | Sequence[int], dtype: Any, owner: Any = None, device: int = -1) -> Any:
    """A C-contiguous array over memory that the pool does not own; `owner` lives as long as the storage, and until the work queued when
    the last view goes away has passed. device: -1 is the current one."""

# ---- packaged text ----
# ---- whole programs (pygpukit.program): for the process that runs one
def program_start(report: int, times: int) -> None:
    """Start the runtime on the backend that is open; findings and sums go to the descriptor as lines of JSON, -1 for none. Raises RuntimeError with the reason. Once a process."""

def program_finish(exit_code: int) -> None:
    """Tell what is told at the end: leaks, errors that nobody looked at, sums. Also done when the process exits."""

def program_calls() -> int:
    """Address of the table of calls, for PYGPUKIT_PROGRAM_CALLS, in hexadecimal."""

def program_library(function: int) -> None:
    """Address of what does the functions of libraries: int (const char *function, void *const *memory, const long long *integers, const double *numbers), 0 when it is done."""

def program_image(unit: str, image: bytes) -> None:
    """Device code of a part of the program; loaded when it is first used."""

def program_symbol(
    library: str, offset: int, kind: int, name: str, unit: str, nbytes: int, file: str, line: int
) -> None:
    """What lies at this offset of the program's library is called so in the unit's image. kind: 0 a kernel, 1 a __device__, 2 a __constant__, 3 a __managed__ variable."""

def sources() -> dict[str, str]:
    """The simulator's headers by path relative to native/ ("sim/include/cuda_fp16.h")."""

# ---- benchmark baseline ----
def resident_blocks(name: int, block_threads: int, shared_bytes: int) -> int:
    """Blocks that a multiprocessor of the current device holds at once of the newest kernel of an interned name; 0 where
    that is not known."""

def launch_many(bound: BoundKernel, args: tuple[Any, ...], launches: int) -> None:
    """Launch so often with the same arguments, each as by a call of its own."""

def launch_loop_ns(bound: BoundKernel, args: tuple[Any, ...], launches: int) -> float:
    """Nanoseconds a launch in a C++ loop straight over the driver table's launch with the same arguments: the ruler for Python overhead."""

# ---- for tests ----
def driver_table() -> int:
    """Address of the open backend's pk_driver table: for tests that go past the pool and the launch function."""

def sim_cancel() -> int:
    """End every kernel of the simulated device that this thread made current; how many (native/sim/sim.h)."""

def sim_clear_fault() -> int:
    """Forget the fault of the simulated device that this thread made current; its status."""

def sim_refused_functions(image: bytes) -> list[str]:
    """Functions that an image of the simulated device takes from the process and may not."""

def sim_take_traffic() -> tuple[int, int, int, int, int]:
    """Global loads, global stores, shared loads, shared stores in bytes, and floating-point operations, of counting
    kernels since the last call."""
