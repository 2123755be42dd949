"""Kernels that cannot be compiled here though another one computes the same: which, why, and what is done about it.

A spec with `instead` says that there is another kernel. Where it cannot be had, its source is lost on that device, the
choices are made anew without it, and the operation that asked for it runs once more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from pygpukit._core import native
from pygpukit.core import choices
from pygpukit.core.backend import frames_inside_package
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode

if TYPE_CHECKING:
    from pygpukit.kernels.spec import KernelSpec

_Function = TypeVar("_Function", bound=Callable[..., Any])
_lost: dict[tuple[int, str], str] = {}  # by device and source: why
_warned: set[tuple[str, str]] = set()


class KernelLostError(NvrtcError):
    """A kernel cannot be compiled here; another one computes the same. Never leaves an operation."""


def lose(spec: KernelSpec, error: NvrtcError) -> KernelLostError:
    """Note that no kernel of this source is to be had on the current device; what to raise then."""
    why = f"{spec.source} cannot be compiled here: {error.args[0] if error.args else error}"
    _lost[native.current_device(), spec.source] = why
    choices.forget()
    return KernelLostError(why, NvrtcErrorCode.Compilation)


def why(spec: KernelSpec) -> str:
    """Why the kernels of a spec's source are lost on the current device, "" where they are not, as far as is known."""
    return _lost.get((native.current_device(), spec.source), "")


def tell(cost: str, reason: str) -> None:
    """Warn what it costs that a kernel is missing, and why, with what mends it: each once."""
    if (cost, reason) not in _warned:
        _warned.add((cost, reason))
        warnings.warn(f"{cost}: {reason}", RuntimeWarning, stacklevel=frames_inside_package())


def replanned(function: _Function) -> _Function:
    """Decorator of an operation that chooses among kernels: where the chosen one is lost, it chooses again.

    The operation raises NvrtcError where it chooses a kernel that it has lost before.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        losses: set[str] = set()
        while True:
            try:
                return function(*args, **kwargs)
            except KernelLostError as loss:
                reason = str(loss.args[0])
                if reason in losses:
                    raise NvrtcError(f"{reason}; no other kernel was chosen", NvrtcErrorCode.Compilation) from None
                losses.add(reason)

    return run  # type: ignore[return-value]
