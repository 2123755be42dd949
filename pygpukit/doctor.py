"""`pygpukit doctor`: the toolchains of this machine, which is taken and why, what features lack, and what mends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pygpukit._core import native
from pygpukit.core.extras import install_command
from pygpukit.jit import toolchain
from pygpukit.jit.cutlass import place as cutlass
from pygpukit.jit.toolchain import Toolchain, libraries
from pygpukit.kernels import bundle

_MODULES = {
    "models": ("chat models", ("tokenizers", "jinja2")),
    "tts": ("speech from English text", ("hibari",)),
    "audio": ("sound files beside WAV", ("scipy", "soundfile")),
    "lab": ("notebooks", ("jupyterlab", "ipywidgets", "anywidget", "matplotlib", "ipykernel")),
    "grammar": ("answers of a given form", ("llguidance",)),
    "serve": ("serving a model", ("starlette", "uvicorn", "prometheus_client", "python_multipart")),
}


class Feature(NamedTuple):
    """extra: what brings what it lacks. lacks: "" where it has all. gpu: asked for by GPU users alone."""

    name: str
    has: str
    lacks: str
    extra: str
    gpu: bool = False


def report() -> Iterator[str]:
    """The lines of `pygpukit doctor`. Opens no device and no compiler."""
    reason = native.cuda_probe()
    yield f"GPU          {'yes' if reason is None else f'no: {reason}'}"
    yield "toolchains"
    sets = toolchain.toolchains()
    taken = toolchain.taken()
    for one in sets:
        yield f"{'->' if one == taken else '  '} {one}"
        yield f"     {one.nvrtc}"
        for part, why in one.lacks.items():
            yield f"     no {part}: {why}"
    if not sets:
        yield "   none in a place that is known; the dynamic loader is asked for libnvrtc when it is needed"
    elif taken is not None:
        yield f"   taken: {why_taken(taken, sets)}"
    yield "features"
    every = list(features(taken))
    for feature in every:
        yield f"  {'ok     ' if not feature.lacks else 'missing'} {feature.name}: {feature.lacks or feature.has}"
    yield f"CUTLASS      {cutlass.missing() or f'{cutlass.VERSION}, for cells that include it: {cutlass.folder()}'}"
    yield f"repair       {repair(every, reason is None)}"


def why_taken(taken: Toolchain, sets: tuple[Toolchain, ...]) -> str:
    """Why that set is the best one."""
    if len(sets) == 1:
        return "the only one"
    if taken.makes_tile_kernels:
        return "the newest of those that make tile kernels"
    return "the newest; none makes tile kernels"


def features(taken: Toolchain | None) -> Iterator[Feature]:
    """The features that need something that may be missing."""
    packed = bundle.file().is_file()
    compiler = "" if taken is not None else "NVRTC was not found"
    yield Feature("kernels of your own on a GPU", str(taken), compiler, "cuda", True)
    ahead = f"pre-compiled in {bundle.file()}"
    yield Feature("operations on a GPU", str(taken) if taken else ahead, "" if packed else compiler, "cuda", True)
    tile = compiler or ("" if taken is None or taken.tileiras is not None else taken.lacks.get("tileiras", ""))
    has = f"{taken.tileiras}" if taken is not None and taken.tileiras is not None else ahead
    yield Feature("tensor cores by tile kernels", has, "" if packed else tile, "cuda", True)
    disassembler = toolchain.nvdisasm()
    yield Feature("machine code (SASS)", str(disassembler), "" if disassembler else "no nvdisasm", "cuda", True)
    for name, extra, files in (
        ("large linear algebra on a GPU (cuSOLVER)", "linalg", libraries.cusolver_candidates()),
        ("gp.fastest_products() (cuBLASLt)", "cublas", libraries.cublaslt_candidates()),
    ):
        file = next((path for path in files if Path(path).is_file()), None)
        yield Feature(name, str(file), "" if file else "the library lies in no place that is known", extra, True)
    for extra, (name, modules) in _MODULES.items():
        absent = [module for module in modules if find_spec(module) is None]
        yield Feature(name, ", ".join(modules), f"{', '.join(absent)} not installed" if absent else "", extra)


def repair(every: list[Feature], gpu: bool) -> str:
    """The one command after which nothing is missing that this machine can use."""
    extras = dict.fromkeys(one.extra for one in every if one.lacks and (gpu or not one.gpu))
    if not extras:
        return "nothing is missing" + ("" if gpu else " that a machine without a GPU can use")
    return install_command(*extras)


def short() -> str:
    """One line of `pygpukit info`."""
    taken = toolchain.taken()
    if taken is None:
        return "none found; pygpukit doctor says what is needed"
    lacks = "" if taken.makes_tile_kernels else ", no tile kernels: pygpukit doctor says why"
    return f"{taken}{lacks}"


def command(_: object = None) -> int:
    """Print the report. Exit code 0."""
    for line in report():
        sys.stdout.write(line + "\n")
    return 0
