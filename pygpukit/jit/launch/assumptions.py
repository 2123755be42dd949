"""Launchers of tile kernels that check what the kernel takes for granted of its arguments."""

from __future__ import annotations

from typing import Any, TypeAlias

from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit.source.signature import KernelSignature


class CheckedLauncher:
    """A launcher of a tile kernel that checks what the kernel takes for granted of its arguments.

    A wrong assumption would give wrong results, or a fault. Seen is what the kernel's own body writes:
    assume_aligned<N>(parameter) and assume_divisible<N>(parameter).
    """

    def __init__(self, bound: native.BoundKernel, signature: KernelSignature) -> None:
        self._bound = bound
        self._name = signature.short_name
        places = {parameter.name: at for at, parameter in enumerate(signature.parameters)}
        self._checks = [
            (places[name], name, kind, number) for name, kind, number in signature.assumptions if name in places
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch. Raises KernelArgumentError as any launcher, and for a broken assumption."""
        for at, name, kind, number in self._checks:
            argument = args[at] if at < len(args) else kwargs.get(name)
            value: Any = argument.device_ptr if isinstance(argument, native.ArrayBase) else argument
            if not hasattr(value, "__index__") or not value.__index__() % number:
                continue  # what is no number or array is refused by the launcher
            what = f"is a multiple of {number} bytes" if kind == "aligned" else f"is divisible by {number}"
            shown = hex(value) if kind == "aligned" else value
            raise KernelArgumentError(
                f"{self._name}(): parameter '{name}': the kernel assumes that it {what}, and it is {shown}; "
                "pass what fits, or compile a variant without the assumption",
                name,
            )
        self._bound(*args, **kwargs)


Launcher: TypeAlias = "native.BoundKernel | CheckedLauncher"
