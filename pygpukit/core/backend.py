"""Which backend this process uses: `cuda` on a real device, else `sim`, the simulated one. Decided once, on first need.

`PYGPUKIT_BACKEND=cuda|sim` decides by name; without it a usable GPU is taken when there is one. Falling back to the
simulation is said once, with the reason: by a BackendFallbackWarning, in a notebook by one printed line. Asking for
`sim` is not a fallback and says nothing.
The compiled core calls ensure() when something needs a device and none is open.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import pretended
from pygpukit.core.device_calls import DeviceCalls
from pygpukit.core.device_calls import DeviceProperties as DeviceProperties
from pygpukit.core.errors import BackendFallbackWarning, BackendUnavailableError, DriverError, InvalidSpecError

_PLAINLY = {
    "CUDA driver not detected (libcuda.so.1 not found)": "no NVIDIA driver found",
    "No GPU devices found (cudaGetDeviceCount == 0)": "no NVIDIA GPU found",
}
_lock = threading.Lock()
_backend: Backend | None = None
_inherited = False  # this process was forked by one that had opened its backend


class Backend(DeviceCalls, str):
    """The name of a backend, "cuda" or "sim", and its low-level calls. `reason` says why it is this one."""

    reason: str

    __slots__ = ("reason",)

    def __new__(cls, name: str, reason: str) -> Backend:
        self = super().__new__(cls, name)
        object.__setattr__(self, "reason", reason)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"the backend is fixed for the process; cannot set {name!r}")

    def _open(self) -> None:
        set_backend(self)


class NativeBackend(Backend):
    """CUDA devices, by their driver."""

    __slots__ = ()

    def __new__(cls, reason: str = "NativeBackend()") -> NativeBackend:
        return super().__new__(cls, "cuda", reason)  # type: ignore[return-value]

    def is_available(self) -> bool:
        """True when a CUDA driver with a supported device answers. Opens nothing."""
        return native.cuda_probe() is None


class CPUSimulationBackend(Backend):
    """Simulated devices on the processor."""

    __slots__ = ()

    def __new__(cls, reason: str = "CPUSimulationBackend()") -> CPUSimulationBackend:
        return super().__new__(cls, "sim", reason)  # type: ignore[return-value]

    def is_available(self) -> bool:
        """True: it needs no device."""
        return True


_KINDS: dict[str, type[NativeBackend | CPUSimulationBackend]] = {"cuda": NativeBackend, "sim": CPUSimulationBackend}


def backend() -> Backend:
    """The backend of this process, opened now if it was not yet: "cuda" or "sim", with `.reason`.

    Raises InvalidSpecError for a PYGPUKIT_BACKEND that is neither, and BackendUnavailableError when that variable
    asks for cuda and no usable GPU answers. Never raises merely because there is no GPU.
    """
    return _backend or ensure()


def ensure() -> Backend:
    """Open the backend if none is open, and return it. Safe from several threads; the first call decides."""
    global _backend
    with _lock:
        if _backend is None:
            asked = os.environ.get("PYGPUKIT_BACKEND", "")
            _backend = _open(asked, f"PYGPUKIT_BACKEND={asked}")
        return _backend


def refuse_inherited(doing: str) -> None:
    """Raise DriverError in a process that was forked after its backend was opened.

    For what would not find out from the device, or not before it waits for a lock of a thread that was not copied.
    """
    if _inherited:
        raise DriverError(
            f"{doing}: this process was forked after its {native.backend_name()} device was opened, and cannot use it: "
            'start processes with the "spawn" method',
            3,
            "CUDA_ERROR_NOT_INITIALIZED",
        )


def is_inherited() -> bool:
    """True in a process that was forked after its backend was opened: it can use no device."""
    return _inherited


def is_sim() -> bool:
    """True when the simulated device is used, and not as another one (kernels/planning.py). Opens the backend if
    needed."""
    return pretended.current is None and (_backend or ensure()) == "sim"


def set_backend(backend: str) -> Backend:
    """Choose the backend, "cuda" or "sim" or a Backend, before anything has opened one; PYGPUKIT_BACKEND in a call.

    Raises InvalidSpecError for another name, BackendUnavailableError when cuda cannot be used or another one is open.
    """
    global _backend
    with _lock:
        if _backend is None:
            _backend = _open(backend, f"set_backend({str(backend)!r})")
        elif _backend != backend:
            raise BackendUnavailableError(
                f"set_backend({str(backend)!r}): this process uses {_backend}, and arrays may live there; start a new "
                "process",
                backend,
                f"{_backend} is open",
            )
        return _backend


def reset_backend() -> None:
    """Choose by PYGPUKIT_BACKEND and what is there again, when nothing has been opened yet or that is what is open.

    Raises BackendUnavailableError where the choice would be another than the open one: arrays may live there.
    """
    asked = os.environ.get("PYGPUKIT_BACKEND", "")
    choice = asked or ("cuda" if native.cuda_probe() is None else "sim")
    if _backend is not None and _backend != choice:
        raise BackendUnavailableError(
            f"reset_backend(): {choice} would be chosen, but this process uses {_backend}, and arrays may live there; "
            "start a new process",
            choice,
            f"{_backend} is open",
        )


def get_backend() -> Backend:
    """backend(), under its documented second name."""
    return backend()


def has_native_module() -> bool:
    """True: the package does not import without its compiled core."""
    return True


def get_native_module() -> ModuleType:
    """The C++ layer."""
    return native


def has_rust_module() -> bool:
    """True: the package does not import without its compiled core."""
    return True


def get_rust_module() -> ModuleType:
    """The compiled core, which holds the Rust classes."""
    return _core


def _open(asked: str, asked_by: str) -> Backend:
    """Open the backend of that name, or with "" the one that suits what is there."""
    if os.environ.get("PYGPUKIT_USE_RUST") == "0":
        raise BackendUnavailableError(
            "PYGPUKIT_USE_RUST=0 is refused: memory and launches go through the Rust core and there is no other "
            "runtime; unset the variable",
            reason="PYGPUKIT_USE_RUST=0",
        )
    if asked not in ("", "cuda", "sim"):
        raise InvalidSpecError(
            f"{asked_by}: the backend must be 'cuda' or 'sim'; leave it unset to choose by what is there", "backend"
        )
    already = native.backend_name()
    if already is not None:
        return _KINDS[already]("opened through the compiled core")
    if asked == "sim":
        native.open_backend("sim")
        return CPUSimulationBackend(asked_by)
    missing = native.cuda_probe()
    if missing is None:
        native.open_backend("cuda")
        return NativeBackend(asked_by if asked else "a CUDA driver with a supported device answered")
    if asked == "cuda":
        raise BackendUnavailableError(
            f"{asked_by}, but no GPU can be used: {missing}; leave it unset to use the simulated device",
            "cuda",
            missing,
        )
    native.open_backend("sim")
    return _fall_back(missing)


def _fall_back(missing: str) -> Backend:
    if _has_shell():  # it would show a warning as a red box that names its own file
        print(f"Simulated device: {_PLAINLY.get(missing, missing.rstrip('.'))}")
    else:
        message = f"{missing.rstrip('.')}. Falling back to CPU simulation backend."
        warnings.warn(message, BackendFallbackWarning, stacklevel=frames_inside_package())
    return CPUSimulationBackend(missing)


def _has_shell() -> bool:
    """True where this process is a notebook's kernel, or IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def frames_inside_package() -> int:
    """The stack level of the first caller outside the package, so that the warning points at the user's line."""
    package = str(Path(__file__).parent.parent)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def _begin_as_child() -> None:
    global _inherited, _lock
    _lock = threading.Lock()
    _inherited = native.backend_name() is not None


os.register_at_fork(after_in_child=_begin_as_child)
