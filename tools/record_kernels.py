"""Writes pygpukit/kernels/needed.json: the kernels that models launch first, on each architecture. Needs no GPU.

    python tools/record_kernels.py [--check]

The models are fetched. They are loaded and asked on a device that is pretended (pygpukit/kernels/planning.py), with and
without tile kernels. With --check nothing is written, and what the file lacks is said.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

LIMIT_S = 40.0
# Launched on an H200 beside those that a pretended device asks for.
_REAL: list[object] = ["ops/matmul/cuda_cores/real.cu", "pk::real<float, 2, 2, 2, 1, 16, 6, 8, 12, 2, 2>", []]
_COPY: list[object] = ["ops/elementwise/elementwise.cu", "pk::unary<short, float, pk::Copy>", []]
SEEN: dict[tuple[str, str], list[list[object]]] = {
    ("whisper-tiny.en", "sm_90a"): [_COPY],
    ("whisper-tiny.en", "sm_90a without tile kernels"): [_COPY],
    ("kokoro-82m", "sm_90a"): [
        _REAL,
        ["ops/nn/conv/gathered.cu", "pk::convolve_gathered<float, 128, 6, 1>", []],
        ["ops/nn/conv/gathered.cu", "pk::convolve_gathered<pk::half_t, 128, 6, 1>", []],
        ["ops/nn/conv/tile.cu", "pk::convolve<float, 128, 128, 128, 32, 8, pk::Order::kLast>", []],
        ["ops/nn/conv/tile.cu", "pk::convolve<float, 128, 128, 64, 32, 4, pk::Order::kLast>", []],
    ],
    ("kokoro-82m", "sm_90a without tile kernels"): [
        _REAL,
        ["ops/copying/transpose.cu", "pk::transpose<unsigned int, 1, 64>", []],
    ],
}
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
CLIP = Path(__file__).resolve().parent.parent / "notebooks" / "data" / "library.wav"


def chat() -> None:
    import pygpukit as gp

    model = gp.llm.load("smollm2-135m-instruct", dtype="bfloat16", context=8192, progress=False)
    for _ in model.chat("What is the capital of France?", 6, ignore_eos=True):
        pass


def recognition() -> None:
    import pygpukit as gp

    gp.asr.load("whisper-tiny.en", progress=False).transcribe(str(CLIP))


def speech() -> None:
    import pygpukit as gp

    gp.tts.load("kokoro-82m", lang=None).synthesize(phonemes="\u00f0")


MODELS: dict[str, Callable[[], None]] = {
    "smollm2-135m-instruct": chat,
    "whisper-tiny.en": recognition,
    "kokoro-82m": speech,
}


def record(run: Callable[[], None], arch: str, tiles: bool) -> list[list[object]]:
    """source, expression and options of what one would launch, as far as it comes: values are not those of a device."""
    from pygpukit.jit.compile import nvrtc, tile
    from pygpukit.kernels.planning import planning

    with (
        patch.object(nvrtc, "missing", lambda: ""),
        patch.object(tile, "missing", lambda: "" if tiles else "left out"),
        planning(arch) as asked,
    ):
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)  # a model that reads nonsense may write without an end
        try:
            run()
        except Exception as error:
            print(f"  {arch}: it ended early: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    kernels = {(spec.source, spec.expression, spec.options) for spec in asked}
    return [[source, expression, list(options)] for source, expression, options in sorted(kernels)]


def _stop(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT_S} s")


def main() -> int:
    import pygpukit as gp
    from pygpukit.kernels import needed

    parser = argparse.ArgumentParser(description="Record which kernels models launch.")
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    gp.ones(1)
    signal.signal(signal.SIGALRM, _stop)
    kernels = {
        model: {
            f"{arch}{'' if tiles else needed.WITHOUT_TILES}": record(run, arch, tiles)
            for arch in ARCHITECTURES
            for tiles in (True, False)
        }
        for model, run in MODELS.items()
    }
    for (model, arch), seen in SEEN.items():
        kernels[model][arch] += [one for one in seen if one not in kernels[model][arch]]
    if check:
        lacking = [
            f"{model} on {arch}"
            for model, every in kernels.items()
            for arch, own in every.items()
            if own != needed.listed().get(model, {}).get(arch)
        ]
        print(f"other kernels than listed: {', '.join(lacking)}" if lacking else "the list is as it should be")
        return bool(lacking)
    needed.LISTED.write_text(json.dumps(kernels, separators=(",", ":")) + "\n", encoding="utf-8")
    for model, every in kernels.items():
        print(model, {arch: len(own) for arch, own in every.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
