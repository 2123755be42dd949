"""Every exception the package raises: one hierarchy, each with fields a program can read.

The compiled core raises these too, by importing this module; constructors therefore take the message first and
then the fields in the order documented here. Nothing is imported that is not in every interpreter already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar


class GPUError(RuntimeError):
    """Root of all errors of this package."""

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows instead of its own: that of the user's code."""
        from pygpukit.core.frames import rendered

        return rendered(self)


class BackendUnavailableError(GPUError):
    """The backend that was asked for by name cannot be opened. Fields: backend, reason."""

    def __init__(self, message: str, backend: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.backend = backend
        self.reason = reason


class DriverError(GPUError):
    """A device call failed. Fields: code (the driver's number), name ("CUDA_ERROR_INVALID_VALUE")."""

    def __init__(self, message: str, code: int = 999, name: str = "CUDA_ERROR_UNKNOWN") -> None:
        super().__init__(message)
        self.code = code
        self.name = name


@dataclass(frozen=True)
class Finding:
    """A finding of checked mode in a kernel.

    kind: "out of bounds", "misaligned", "use after free", "uninitialised", "race", "divergent barrier", "deadlock",
    "warp mask", "warp matrix", "integer division by zero", "time limit", "stack overflow" or "assert". line: in the
    source as the user counts it, 0 = unknown. array: parameter or variable, "" = none; index: of its element, None =
    none.
    """

    kind: str
    message: str
    kernel: str = ""
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    line: int = 0
    array: str = ""
    index: int | None = None


class KernelCheckError(DriverError):
    """A kernel in checked mode did what it must not. Fields: those of DriverError, findings (list of Finding).

    The simulated device works on.
    """

    # Findings as lines of text. pygpukit.jit, which has the kernels' sources, brings its own.
    reader: ClassVar[Callable[[Sequence[Finding]], list[str]]] = staticmethod(lambda findings: [])

    def __init__(
        self,
        message: str,
        code: int = 719,
        name: str = "CUDA_ERROR_LAUNCH_FAILED",
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(message, code, name)
        self.findings = list(findings)

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback: the kernel's own, where its source is at hand."""
        return type(self).reader(self.findings) or [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Launch:
    """A launch as it was recorded. blocks and threads are products of the extents; cell "" and line 0 are unknown."""

    kernel: str
    blocks: int
    threads: int
    cell: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f", launched by {self.cell} line {self.line}" if self.cell else ""
        return f"{self.kernel} ({self.blocks} blocks of {self.threads} threads{place})"


class ContextLostError(DriverError):
    """A kernel's fault destroyed the CUDA context of this process, for good: nothing on the device works any more.

    Field beside DriverError's: launches, those that had not been waited for when the fault showed, latest first; the
    one that faulted is among them.
    """

    def __init__(
        self,
        message: str,
        code: int = 999,
        name: str = "CUDA_ERROR_UNKNOWN",
        launches: Sequence[Launch] = (),
    ) -> None:
        super().__init__(message, code, name)
        self.launches = list(launches)


def driver_error(message: str, code: int = 999, name: str = "CUDA_ERROR_UNKNOWN") -> DriverError:
    """The error that the core raises for a failed device call: a DriverError, or its kin that says what was lost."""
    from pygpukit.core.faults import error_for  # a process without faults does not pay for it

    return error_for(message, code, name)


class CollectiveError(GPUError):
    """Ranks of a group cannot go on together (gp.comm). Fields: rank, the one that noticed it; peer, the one that it
    waits for; -1 where there is none. The group is of no use any more.
    """

    def __init__(self, message: str, rank: int = -1, peer: int = -1) -> None:
        super().__init__(message)
        self.rank = rank
        self.peer = peer


class NvrtcErrorCode(IntEnum):
    """NVRTC's own result codes, and from 1000 on the failures that come before or after a compile."""

    Success = 0
    OutOfMemory = 1
    ProgramCreationFailure = 2
    InvalidInput = 3
    InvalidProgram = 4
    InvalidOption = 5
    Compilation = 6
    BuiltinOperationFailure = 7
    NoNameExpressionsAfterCompilation = 8
    NoLoweredNamesBeforeCompilation = 9
    NameExpressionNotValid = 10
    InternalError = 11
    NotLoaded = 1000
    PtxLoadFailed = 1001
    FunctionNotFound = 1002
    LaunchFailed = 1003


class NvrtcError(GPUError):
    """The JIT compiler failed. Fields: code (NvrtcErrorCode), compilation_log. str() is "[CodeName] message"."""

    def __init__(
        self, message: str, code: NvrtcErrorCode | int = NvrtcErrorCode.InternalError, compilation_log: str = ""
    ) -> None:
        super().__init__(message)
        known = int(code) in NvrtcErrorCode.__members__.values()  # a newer compiler may have codes of its own
        self.code: NvrtcErrorCode | int = NvrtcErrorCode(code) if known else int(code)
        self.compilation_log = compilation_log

    def __str__(self) -> str:
        label = self.code.name if isinstance(self.code, NvrtcErrorCode) else f"NVRTC {self.code}"
        return f"[{label}] {super().__str__()}"


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler. line and column count from 1, as the user sees the cell; 0 = unknown."""

    line: int
    column: int
    severity: str  # "error", "warning" or "note"
    message: str
    file: str = ""


class CompileError(NvrtcError):
    """The source does not compile. Fields: log, diagnostics (list of Diagnostic)."""

    def __init__(self, message: str, log: str = "", diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message, NvrtcErrorCode.Compilation, log)
        self.log = log
        self.diagnostics = list(diagnostics)


class CompileAllError(GPUError):
    """Some units of compile_all() failed. Fields: errors (by unit name), units (all; the others are compiled)."""

    def __init__(self, message: str, errors: Mapping[str, Exception] | None = None, units: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.errors = dict(errors or {})
        self.units = list(units)


class OutOfMemoryError(GPUError, MemoryError):
    """The pool cannot serve a request.

    Fields in bytes: requested, limit, free, used. owners: the largest holders first, (bytes, tenant, array name, cell,
    line). tenant: whose own limit it is, "" = the pool's.
    """

    def __init__(
        self,
        message: str,
        requested: int = 0,
        limit: int = 0,
        free: int = 0,
        owners: Sequence[Any] = (),
        tenant: str = "",
        used: int = 0,
    ) -> None:
        super().__init__(message)
        self.tenant = tenant
        self.used = used
        self.requested = requested
        self.limit = limit
        self.free = free
        self.owners = list(owners)


def negative_power(exponent: int) -> ValueError:
    """The error that integers to a negative power raise."""
    return ValueError(f"power: integers to the negative power {exponent} are not integers; convert to a float first")


def out_of_range(value: int, axis: int, extent: int) -> IndexError:
    """The error for an index outside its axis."""
    return IndexError(f"index {value} is out of range for axis {axis} with size {extent}")


class ShapeError(GPUError, ValueError):
    """Shapes do not fit together, or a shape does not fit an operation."""


class DTypeError(GPUError, TypeError):
    """A data type is unknown, or an operation is not defined for it."""


class DeviceMismatchError(GPUError, ValueError):
    """Arrays of one operation live on different devices."""


class KernelArgumentError(GPUError, TypeError):
    """An argument does not fit the kernel's signature. Field: parameter (its name, "" when the count is wrong)."""

    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class TaskRejectedError(GPUError):
    """The scheduler refused a task. Fields: reason (closed name), detail (the numbers behind it)."""

    def __init__(self, message: str, reason: str = "", detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.detail = dict(detail or {})


class TaskCancelledError(GPUError):
    """The thread's task was cancelled or expired while it ran: it launches nothing more."""


class TaskDeadlockError(GPUError):
    """A task waits for another of its scheduler that can never end: every worker that could run it waits."""


class ContextDestroyedError(GPUError):
    """The execution context is gone: create it again, and leave the sessions that are still in it."""


class TransferCancelledError(GPUError):
    """An asynchronous copy was cancelled. Field: landed (bytes that were copied, from the start)."""

    def __init__(self, message: str, landed: int = 0) -> None:
        super().__init__(message)
        self.landed = landed


class InvalidSpecError(GPUError, ValueError):
    """A request is malformed. Field: field (which part of it)."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ModelFileError(GPUError, ValueError):
    """A file of a model is malformed, or of a kind that is not read. Field: path ("" where there is no file)."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ModelNotFoundError(GPUError, LookupError):
    """A model, or a file of it, is neither here nor could be fetched. The message says which file to put where."""


class PluginError(GPUError):
    """A plugin raised, cannot be loaded, or gave what its operation does not give; its own error is the cause.

    Fields: plugin (its name), distribution ("name version" of what was installed, "" for a function of this process),
    operation (that it replaces, "" for none).
    """

    def __init__(self, message: str, plugin: str = "", distribution: str = "", operation: str = "") -> None:
        super().__init__(message)
        self.plugin = plugin
        self.distribution = distribution
        self.operation = operation


class UnsliceableError(GPUError):
    """A kernel cannot be launched in slices. Fields: reason (one of `_core.SLICE_REASONS`), function and line (of the
    PTX; "" and 0 for none)."""

    def __init__(self, message: str, reason: str = "", function: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.function = function
        self.line = line


class PageableMemoryWarning(RuntimeWarning):
    """Host memory that was to be pinned is not, because the system pins no more: copies of it are slower."""


class BackendFallbackWarning(RuntimeWarning):
    """Said once, outside notebooks: no usable GPU was found, so the simulated device is used."""
