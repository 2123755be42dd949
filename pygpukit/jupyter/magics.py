"""%%cuda: compile the cell, bind its kernels and, when asked, launch one. %gpu: one line on device and pool.
%gpu_timing: how cells are timed. %%gpu_profile: where a cell's time went. %cuda_reset: what to do after a fault."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.jupyter import isolated, status
from pygpukit.jupyter.card import CellResult
from pygpukit.jupyter.card_program import ProgramResult
from pygpukit.jupyter.cells import NamedCells, Source
from pygpukit.jupyter.compiled import Compiled, compile_cell
from pygpukit.jupyter.ledger import Ledger
from pygpukit.jupyter.names import Names, callers_variables
from pygpukit.jupyter.options import UNIT_NAME, Defaults, Options, cuda_arguments, parse
from pygpukit.jupyter.program_cell import is_program, run_program
from pygpukit.jupyter.run import Outcome, label, run_once, run_sweep
from pygpukit.jupyter.sweep import configurations, macros
from pygpukit.jupyter.vocabulary import Vocabulary
from pygpukit.profiling.trace import Profile, profile


@magics_class
class CudaMagics(Magics, Defaults):  # type: ignore[misc]
    """The magics of one shell. Its traitlets are the defaults of %%cuda's options."""

    def __init__(self, shell: Any, ledger: Ledger) -> None:
        super().__init__(shell)
        self._ledger = ledger
        self.named_cells = NamedCells()
        self.vocabulary = Vocabulary()

    @cuda_arguments
    @no_var_expand
    @cell_magic
    def cuda(self, line: str, cell: str) -> CellResult | ProgramResult:
        """Compile the cell's CUDA C++ and bind every kernel to its name in the notebook.

        With -i, -o or --grid the cell also launches a kernel, waits for it and shows what came of it. A compile error
        fails the cell (CudaCompileError with .diagnostics; lines count from the magic line), as does an output that
        differs from its --verify reference (VerificationError).

        A cell with main() is a whole program: it runs in a process of its own, and its output is the cell's.
        """
        options = parse(line, self.cuda.parser, self)
        name = options.name or UNIT_NAME
        text = self._ledger.blank_lines_above() + "\n" + cell  # the compiler counts lines as the user does
        source = self.named_cells.source(name, text, options.headers)
        if is_program(source, options):
            self.vocabulary.learn(cell)
            return run_program(source, options)
        names = Names(self.shell.user_ns, callers_variables())
        sweeping = bool(options.sweep) and options.launches
        settings = configurations(options.sweep, names, options.max_sweep) if sweeping else []
        compiled = self._compiled(source, options, settings[0] if settings else {})
        self.vocabulary.learn(cell)
        if options.name is not None:
            self.named_cells.keep(options.name, text, options.headers)
        self.shell.user_ns.update(compiled.kernels)
        outcome = Outcome()
        if settings:
            outcome = run_sweep(
                lambda one: self._compiled(source, options, one).kernels,
                settings,
                options,
                names,
                self.shell.user_ns.update,
            )
        elif options.launches:
            outcome = run_once(compiled.kernels, options, names, self.shell.user_ns.update)
        return CellResult(
            compiled.unit,
            compiled.kernels,
            loaded=not options.no_launch,
            compile_ms=compiled.compile_ms,
            launch=outcome.launch,
            verify=outcome.verify,
            bench=outcome.bench,
            sweep=outcome.sweep,
            profiled=outcome.profiled,
            listing=options.listing,
            header=options.name or "",
        )

    @line_magic
    def gpu(self, line: str) -> None:
        """Print one line: backend, device, memory, pool, launches. Opens the backend if none is open."""
        if line.strip():
            raise UsageError(f"%gpu takes no arguments, got {line.strip()!r}")
        backend()
        print(status.line(status.fields()))

    @line_magic
    def gpu_timing(self, line: str) -> None:
        """Choose how the GPU time of cells is measured from here on: on, exact or off. Without a word, print which.

        on: from the first to the last work of each stretch without a pause. exact: each launch between two events of
        its own, which costs about 2 us a launch on the device's side of the program. off: not at all.
        """
        if line.strip():
            try:
                native.set_launch_timing(line.strip())
            except ValueError as error:
                raise UsageError(f"%gpu_timing: {error}") from None
        else:
            print(native.launch_timing())

    @no_var_expand
    @cell_magic
    def gpu_profile(self, line: str, cell: str) -> Profile | None:
        """Run the cell and show where the device's time went: launches, copies and fills on a timeline and in a table.

        A word after the magic is a file to write, as Trace Event JSON for Perfetto; --cupti before it also tells of
        other libraries' work, as gp.profiling.profile(cupti=True). An error of the cell shows as ever, and nothing
        else.
        """
        option, _, rest = line.strip().partition(" ")
        if option.startswith("-") and option != "--cupti":
            raise UsageError(f"%%gpu_profile: no option {option}; write %%gpu_profile [--cupti] [FILE]")
        cupti = option == "--cupti"
        path = rest.strip() if cupti else line.strip()
        recorder = profile(cupti=cupti)
        outer = self.shell.displayhook.exec_result
        with recorder as recorded:
            done = self.shell.run_cell(cell)
        self.shell.displayhook.exec_result = outer  # which the inner cell has taken
        if not done.success:
            return None
        if path:
            recorded.export_chrome_trace(path)
        return recorded

    @line_magic
    def cuda_reset(self, line: str) -> None:
        """After a fault: bring back what can be brought back, and say what that was.

        The simulated device forgets the fault; the worker of isolated kernels starts afresh. Raises ContextLostError
        when the notebook's own CUDA context is lost: nothing in this process brings that back, restart the kernel.
        """
        if line.strip():
            raise UsageError(f"%cuda_reset takes no arguments, got {line.strip()!r}")
        print(isolated.reset())

    def _compiled(self, source: Source, options: Options, settings: dict[str, Any]) -> Compiled:
        context = f"with {label(settings)}:\n" if settings else ""
        return compile_cell(source, options, macros(settings), context)
