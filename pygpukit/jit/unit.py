"""A compiled source with its kernels: one image, one module, any number of kernel objects."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.errors import GPUError
from pygpukit.jit.compiler import compile_source
from pygpukit.jit.image import Image
from pygpukit.jit.options import parse_options
from pygpukit.jit.signature import KernelSignature, scan


class Unit:
    """One compiled source.

    signatures: kernels that can be launched, by the name they are asked for. templates: kernels that need a name
    expression and were given none. loadable: whether the open backend can run it.
    """

    def __init__(
        self,
        source: str,
        *,
        name: str = "kernel",
        options: Sequence[str] = (),
        defines: Mapping[str, object] | None = None,
        arch: str | None = None,
        name_expressions: Sequence[str] = (),
    ) -> None:
        """Reads the kernels; .image compiles on first use. Raises ValueError for an expression without a template."""
        self.source, self.name, self.options = source, name, tuple(options)
        found = scan(source, parse_options(options, defines).defines)
        self.signatures = _instantiated(found, name_expressions)
        used = {expression.partition("<")[0] for expression in name_expressions}
        self.templates = tuple(one for one in found if one.template is not None and one.name not in used)
        self._defines, self._arch = defines, arch
        self._module: native.Module | None = None
        self._lock = threading.Lock()

    @cached_property
    def image(self) -> Image:
        """The compile's result. Raises what compile_source() raises."""
        expressions = [one.expression for one in self.signatures.values() if one.expression is not None]
        return compile_source(
            self.source,
            name=self.name,
            options=self.options,
            defines=self._defines,
            arch=self._arch,
            name_expressions=expressions,
        )

    @property
    def loadable(self) -> bool:
        return (self.image.kind == "sim") == (backend() == "sim")

    def function(self, signature: KernelSignature) -> native.Function:
        """The kernel in the module, loaded by the first call. Raises GPUError for an image of the other backend."""
        with self._lock:
            if self._module is None:
                if not self.loadable:
                    raise GPUError(
                        f"{signature.name} was compiled for {self.image.arch} and the backend is {backend()}: it can "
                        "be inspected, not launched; leave out the architecture to compile for the open backend"
                    )
                self._module = native.Module(self.image.image)
            return self._module.function(self.image.symbol(signature.expression or signature.name))


def _instantiated(found: Sequence[KernelSignature], expressions: Sequence[str]) -> dict[str, KernelSignature]:
    """Plain kernels by their name, and one entry for every name expression."""
    out = {one.name: one for one in found if one.template is None}
    templates = {one.name: one for one in found if one.template is not None}
    for expression in expressions:
        base = expression.partition("<")[0].strip()
        if base in templates:
            out[expression] = templates[base].instantiate(expression)
        elif expression not in out:
            known = ", ".join(templates) or "none"
            raise ValueError(
                f"Function {expression!r} not found: no template {base!r} in the source (templates: {known})"
            )
    return out
