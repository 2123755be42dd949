"""A compiled source with its kernels and variables: one image, one module, any number of kernel objects."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import Finding, GPUError, KernelCheckError
from pygpukit.core.text import storable
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile import expand
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.options import include_options, parse_options
from pygpukit.jit.compile.refused import refuse_nesting
from pygpukit.jit.source.signature import KernelSignature, scan, scan_variables
from pygpukit.jit.source.variables import Variable

if TYPE_CHECKING:
    from pygpukit.jit.inspect.cubin import Cubin, Resources
    from pygpukit.jit.launch.globals import Globals
    from pygpukit.jit.launch.kernel import JITKernel

_loaded: WeakValueDictionary[str, Unit] = WeakValueDictionary()  # by kernel name


def loaded_unit(kernel: str) -> Unit | None:
    """The unit that a kernel of this name was last loaded from, while it is alive: whose lines its faults mean."""
    return _loaded.get(kernel)


def read_findings(findings: Sequence[Finding]) -> list[str]:
    """Lines about the findings of one launch, with those of the source where it is at hand."""
    from pygpukit.jit.inspect.findings import render

    unit = loaded_unit(findings[0].kernel) if findings else None
    return render(findings, unit.name if unit else "", unit.source if unit else "")


KernelCheckError.reader = staticmethod(read_findings)


class Unit:
    """One compiled source.

    signatures: kernels that can be launched, by the name they are asked for. templates: kernels that need a name
    expression and were given none. func: a kernel that is asked for, to be looked for behind macros and in includes.
    loadable: whether the open backend can run it.
    """

    def __init__(
        self,
        source: str,
        *,
        name: str = "kernel",
        options: Sequence[str] = (),
        defines: Mapping[str, object] | None = None,
        include: Sequence[str | os.PathLike[str]] = (),
        arch: str | None = None,
        name_expressions: Sequence[str] = (),
        check: bool | str | None = None,
        func: str | None = None,
    ) -> None:
        """Reads the kernels; .image compiles on first use. Raises ValueError for an expression without a template."""
        parsed = parse_options(options, defines)
        self.source, self.name, self.options = storable(source), storable(name), (*options, *include_options(include))
        refuse_nesting(self.source, self.name)
        self._asked = (*name_expressions, *((func,) if func else ()))
        signatures = expand.kernels(self.source, self.options, parsed.defines, self._asked)
        self.signatures = _instantiated(signatures, name_expressions)
        spelt = {one.name for one in scan(self.source, parsed.defines)}
        self._hidden = frozenset(one.name for one in signatures) - spelt
        used = {expression.partition("<")[0] for expression in name_expressions}
        self.templates = tuple(one for one in signatures if one.template is not None and one.name not in used)
        self._defines, self._arch, self._check = defines, arch, check
        self._module: native.Module | None = None
        self._lock = threading.Lock()
        self.sliced: dict[str, native.Module] = {}  # variants of kernels by their symbol (jit/launch/slicing.py)

    @cached_property
    def globals(self) -> Globals:
        """The source's __device__ and __constant__ variables."""
        from pygpukit.jit.launch.globals import Globals

        return Globals(self, scan_variables(self.source, parse_options(self.options, self._defines).defines))

    def arguments(self) -> dict[str, Any]:
        """The arguments that compile_source() is called with, apart from the source."""
        # Of those that the tokens do not show, every one: a compiler's table has those that it is asked for.
        expressions = [
            one.expression or one.name
            for one in self.signatures.values()
            if one.expression is not None or one.name in self._hidden
        ]
        return {
            "name": self.name,
            "options": self.options,
            "defines": self._defines,
            "arch": self._arch,
            "name_expressions": expressions,
            "check": self._check,
        }

    def simulated(self, check: bool | str) -> Unit:
        """The same source for the simulation, in a checked mode."""
        parsed = parse_options(self.options, self._defines)  # without the architecture that an option may name
        changed = {"options": parsed.flags, "defines": parsed.defines, "arch": "sim", "check": check}
        return Unit(self.source, **{**self.arguments(), **changed}, func=self._asked[0] if self._asked else None)

    @cached_property
    def image(self) -> Image:
        """The compile's result. Raises what compile_source() raises."""
        return compile_source(self.source, **self.arguments())

    def kernel(self, func: str | None = None, block_size: int = 256) -> JITKernel:
        """One of the unit's kernels, ready to launch; `func` as for jit()."""
        from pygpukit.jit.launch.kernel import JITKernel, chosen

        return JITKernel(self.source, chosen(self, func), self.options, block_size, unit=self)

    @property
    def loadable(self) -> bool:
        return (self.image.kind == "sim") == (backend() == "sim")

    def module(self, subject: str) -> native.Module:
        """The loaded module; the first call loads it. Raises GPUError, naming the `subject`, for an image of
        the other backend."""
        with self._lock:
            if self._module is None:
                if not self.loadable:
                    raise GPUError(
                        f"{subject} was compiled for {self.image.arch} and the backend is {backend()}: it can "
                        "be inspected, not launched; leave out the architecture to compile for the open backend"
                    )
                self._module = native.Module(self.image.image)
                _loaded.update(dict.fromkeys(self.signatures, self))
            return self._module

    def function(self, signature: KernelSignature) -> native.Function:
        """The kernel in the module. Raises as module()."""
        from pygpukit.jit.launch.slicing import remember_unit

        function = self.module(signature.name).function(self.symbol(signature))
        remember_unit(self, signature, function)
        return function

    def symbol(self, signature: KernelSignature) -> str:
        """The kernel's name in the image."""
        return self.image.symbol(signature.expression or signature.name)

    def resources(self, signature: KernelSignature) -> Resources | None:
        """The resources that the kernel uses, read from the image: nothing is loaded. None on the simulated device."""
        return None if self._cubin is None else self._cubin.kernels.get(self.symbol(signature))

    def variable_symbols(self) -> list[str]:
        """Names in the image of the variables that the host can write."""
        return self.variable_names()

    @property
    def variable_names(self) -> Callable[[], list[str]]:
        """variable_symbols() without the unit."""
        return partial(_variable_symbols, self.source, self.options, self._defines, self.image.symbols)

    def variable_place(self, variable: Variable) -> tuple[int, int]:
        """(address, bytes) in the module. Raises as module(), and GPUError when the compiler left the variable out."""
        return self.module(variable.name).global_(self.image.symbol(variable.expression))

    def variable_bytes(self, variable: Variable) -> int:
        """Size of a variable; from the image where it cannot be loaded."""
        if self.loadable or self._cubin is None:
            return self.variable_place(variable)[1]
        nbytes = self._cubin.variables.get(self.image.symbol(variable.expression))
        if nbytes is None:
            raise GPUError(f"{variable.name} is not in the image for {self.image.arch}: the compiler left it out")
        return nbytes

    @cached_property
    def _cubin(self) -> Cubin | None:
        from pygpukit.jit.inspect.cubin import read_cubin

        return read_cubin(self.image.image) if self.image.kind == "nvrtc" and self.image.image else None


def _instantiated(signatures: Sequence[KernelSignature], expressions: Sequence[str]) -> dict[str, KernelSignature]:
    """Plain kernels by their name, and one entry for every name expression."""
    out = {one.name: one for one in signatures if one.template is None}
    templates = {one.name: one for one in signatures if one.template is not None}
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


def _variable_symbols(
    source: str, options: Sequence[str], defines: Mapping[str, object] | None, symbols: Mapping[str, str]
) -> list[str]:
    variables = scan_variables(source, parse_options(options, defines).defines)
    return [symbols.get(one.expression, one.expression) for one in variables if not one.constant]
