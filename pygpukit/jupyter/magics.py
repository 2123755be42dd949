"""%%cuda: compile the cell and bind its kernels. %gpu: one line on device and pool."""

from __future__ import annotations

import re
import shlex
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from pygpukit.core.backend import backend
from pygpukit.core.errors import CompileError
from pygpukit.jit.kernel import JITKernel
from pygpukit.jit.unit import Unit
from pygpukit.jupyter import status
from pygpukit.jupyter.errors import CudaCompileError
from pygpukit.jupyter.ledger import Ledger
from pygpukit.jupyter.results import CellResult

UNIT_NAME = "cell"  # the same for every cell, so that moving a cell or running it again finds it in the cache


@magics_class
class CudaMagics(Magics):  # type: ignore[misc]
    """The magics of one shell."""

    def __init__(self, shell: Any, ledger: Ledger) -> None:
        super().__init__(shell)
        self._ledger = ledger

    @no_var_expand
    @magic_arguments()
    @argument("--name", default=UNIT_NAME, help="file name in messages and records (default: cell)")
    @argument("-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    @argument("--arch", help="compile for this architecture, such as sm_90a; needs NVRTC, no device")
    @argument(
        "--instantiate",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="instantiate a template: 'softmax<float>'",
    )
    @argument("--no-launch", action="store_true", help="compile and inspect only; kernels are not loaded")
    @cell_magic
    def cuda(self, line: str, cell: str) -> CellResult:
        """Compile the cell's CUDA C++ and bind every kernel to its name in the notebook.

        A compile error fails the cell (CudaCompileError with .diagnostics; lines count from the magic line).
        """
        options = self._parse(line)
        source = self._blank_lines_above() + "\n" + cell  # the compiler counts lines as the user does
        macros = dict(_macro(text) for text in options.defines)
        try:
            unit = Unit(
                source, name=options.name, defines=macros, arch=options.arch, name_expressions=options.instantiate
            )
            image = unit.image  # compiles
        except CompileError as error:
            raise CudaCompileError(error, options.name, source) from None
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not (unit.loadable or options.no_launch):
            raise UsageError(f"kernels for {image.arch} cannot run on the {backend()} backend: add --no-launch")
        kernels = {
            _python_name(name): JITKernel(source, name, unit=unit, load=not options.no_launch)
            for name in unit.signatures
        }
        self.shell.user_ns.update(kernels)
        return CellResult(unit, kernels, loaded=not options.no_launch)

    @line_magic
    def gpu(self, line: str) -> None:
        """Print one line: backend, device, memory, pool, launches. Opens the backend if none is open."""
        if line.strip():
            raise UsageError(f"%gpu takes no arguments, got {line.strip()!r}")
        backend()
        print(status.line(status.fields()))

    def _parse(self, line: str) -> Any:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%%cuda: {error}: {line}") from None
        return self.cuda.parser.parse_args(words)

    def _blank_lines_above(self) -> str:
        """Empty lines that stand before the magic in the running cell: IPython drops them, the user counts them."""
        raw = self._ledger.current.raw if self._ledger.current else ""
        above = raw[: len(raw) - len(raw.lstrip())]
        return "\n" * above.count("\n")


def _macro(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.isidentifier():
        raise UsageError(f"-D {text}: {name!r} is not a macro name")
    return name, value if equals else "1"


def _python_name(name: str) -> str:
    """The name a kernel is bound to: without namespaces, an instantiation as softmax_float."""
    head, bracket, rest = name.partition("<")
    return re.sub(r"\W+", "_", head.rpartition("::")[2] + bracket + rest).strip("_")
