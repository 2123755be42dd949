"""Steps of a launching cell once it is compiled: launch, compare, measure, sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from pygpukit._core import native
from pygpukit.array.array import GPUArray
from pygpukit.core.errors import DriverError, GPUError, KernelArgumentError, NvrtcError
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jupyter.card import Launch, SweepPoint
from pygpukit.jupyter.errors import VerificationError, shown_without_frames
from pygpukit.jupyter.launch import Call, bound_arguments, choose, configured
from pygpukit.jupyter.names import Names
from pygpukit.jupyter.options import Options
from pygpukit.jupyter.verify import Reference, Verification
from pygpukit.profiling.bench import BenchResult
from pygpukit.worker.nsight import Launched, Profiled, find, profiled

_CONFIGURATION = ("grid", "block", "shared_bytes")

Kernels = Mapping[str, JITKernel]
Publish = Callable[[Mapping[str, GPUArray]], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a launching cell that is to be shown."""

    launch: Launch | None = None
    verify: tuple[Verification, ...] = ()
    bench: BenchResult | None = None
    sweep: tuple[SweepPoint, ...] = ()
    profiled: tuple[Profiled, ...] = ()


def run_once(kernels: Kernels, options: Options, names: Names, publish: Publish) -> Outcome:
    """Launch the cell's kernel; compare and measure it as the options say. `publish` gets the arrays it made."""
    call = _prepared(kernels, options, names, {})
    profiled = _profiled(call, options)
    verified, measured = run_call(call, options, publish)
    return Outcome(Launch(call.name, call.grid, call.block, call.shared_bytes), verified, measured, profiled=profiled)


def run_call(call: Any, options: Options, publish: Publish) -> tuple[tuple[Verification, ...], BenchResult | None]:
    """Launch what is ready to be launched, a Call or its like; compare and measure it as the options say."""
    reference = _reference(call, options)
    call.start()
    publish(call.arguments.created)
    call.finish()
    verified = reference.compare() if reference else ()
    return verified, _measured(call, options) if options.bench else None


def run_sweep(
    compiled: Callable[[dict[str, Any]], Kernels],
    settings: list[dict[str, Any]],
    options: Options,
    names: Names,
    publish: Publish,
) -> Outcome:
    """Launch, compare and measure every configuration. Each finds the outputs as they were before the cell.

    A configuration that the device refuses to launch is reported with the reason; if all are refused, that is raised.
    """
    points: list[SweepPoint] = []
    verified: tuple[Verification, ...] = ()
    saved: _Saved | None = None
    refused: Exception | None = None
    for one in settings:
        call = _prepared(compiled(one), options, names, one)
        names = names.over(call.arguments.created)
        publish(call.arguments.created)
        saved = saved or _Saved(call.arguments.arrays())
        saved.restore()
        reference = _reference(call, options)
        try:
            call.start()
        except (DriverError, KernelArgumentError) as error:
            if isinstance(error, KernelArgumentError) and error.parameter not in _CONFIGURATION:
                raise
            points.append(SweepPoint(one, None, str(error)))
            refused = error
            continue
        call.finish()
        try:
            verified = reference.compare() if reference else ()
        except VerificationError as error:
            raise VerificationError(f"with {label(one)}: {error}", error.verifications) from None
        points.append(SweepPoint(one, _measured(call, options)))
    if refused is not None and all(point.bench is None for point in points):
        raise refused
    return Outcome(verify=verified, sweep=tuple(points))


def label(settings: Mapping[str, Any]) -> str:
    """ "block=64, TILE=8"."""
    return ", ".join(f"{axis}={value}" for axis, value in settings.items())


def _prepared(kernels: Kernels, options: Options, names: Names, settings: Mapping[str, Any]) -> Call:
    name = choose(kernels, options.kernel)
    arguments = bound_arguments(kernels[name], options, names)
    return configured(name, kernels[name], arguments, options, names, settings)


def _reference(call: Any, options: Options) -> Reference | None:
    if options.verify is None:
        return None
    return Reference(options.verify, call.arguments, call.names, options.rtol, options.atol)


def _measured(call: Any, options: Options) -> BenchResult:
    """bench() of the launch; the outputs are put back afterwards to what they were."""
    work: dict[str, float | None] = {
        name: call.names.number(text, f"--{name}")
        for name, text in (("bytes", options.bytes), ("flops", options.flops))
        if text is not None
    }
    saved = _Saved(call.arguments.arrays())
    try:
        if options.count:
            work = _counted(call)
        return call.bench(work.get("bytes"), work.get("flops"), options.bench_ms)
    finally:
        saved.restore()


def _profiled(call: Call, options: Options) -> tuple[Profiled, ...]:
    """A report of each profiler that was asked for, of the launch as it will be. Raises UsageError where one is not
    there, GPUError where it fails."""
    try:
        programs = [(name, find(name)) for name in options.profilers]
    except GPUError as error:
        raise UsageError(f"%%cuda: {error}") from None
    values = tuple(call.arguments.values.values())
    launch = Launched(call.kernel.unit, call.kernel.name, call.grid, call.block, call.shared_bytes, values)
    with shown_without_frames():
        return tuple(profiled(name, program, launch) for name, program in programs)


def _counted(call: Call) -> dict[str, float | None]:
    """The bytes and operations of the launch, counted on the simulated device. Raises UsageError where the kernel
    cannot run there: no compiler, or a source that is not for it."""
    from pygpukit.worker.counting import count

    values = tuple(call.arguments.values.values())
    try:
        with shown_without_frames():
            counts = count(call.kernel, (call.grid, call.block, call.shared_bytes), values)
    except NvrtcError as error:
        raise UsageError(f"%%cuda: --count runs the kernel on the simulated device: {error.args[0]}") from None
    work: dict[str, float | None] = {"bytes": counts.global_load_bytes + counts.global_store_bytes}
    return work if counts.flops is None else {**work, "flops": counts.flops}


class _Saved:
    """Copies, on the device, of the arrays that a kernel writes."""

    def __init__(self, arrays: Mapping[str, GPUArray]) -> None:
        self._pairs = [(array, array.clone()) for array in arrays.values() if array.size]

    def restore(self) -> None:
        """The arrays get the elements that they had."""
        for array, copy in self._pairs:
            native.copy(array, copy)
