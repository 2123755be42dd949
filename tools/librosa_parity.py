#!/usr/bin/env python3
"""Compares gp.ops.audio with librosa 0.11.0 in float64 on random signals with random parameters.

    python tools/librosa_parity.py --rounds 200             every function once a round, in float32 or float64
    python tools/librosa_parity.py --seed 7 --only cqt vqt  other signals; some functions

In an environment with numpy, scipy, soundfile and librosa==0.11.0. Each call's result must be within the function's
tolerance (tests/audio/drawn/functions.py), in float64 a hundredth of it. Where it is not, but librosa itself in
float32 is at least half as far from its float64, the call counts as ill-conditioned. Of functions that jump, such as a
rolloff's bin, half a percent of the elements may differ over all rounds. What librosa refuses must be refused. Exit
status 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("PYGPUKIT_BACKEND", "sim")

from audio.drawn.functions import FUNCTIONS, Function, inputs  # noqa: E402
from audio.drawn.sounds import sound  # noqa: E402
from audio.drawn.verdicts import BUDGET  # noqa: E402

import pygpukit as gp  # noqa: E402

_SINGLE = {"f": np.float32, "c": np.complex64}
_FINER = 1e-2  # the part of a tolerance that float64 may take: librosa keeps many of its filters in float32


def called(function: Any, one: Function, operands: dict[str, Any], options: dict[str, Any]) -> list[Any] | Exception:
    """The results as NumPy arrays, or the exception."""
    operands = dict(operands)
    first = [operands.pop(next(iter(operands)))] if one.first else []
    try:
        results = function(*first, **operands, **options)
    except Exception as error:  # what is refused is compared, too
        return error
    results = results if isinstance(results, tuple) else (results,)
    return [x.to_numpy() if isinstance(x, gp.GPUArray) else np.asarray(x) for x in results]


class Tally:
    """Tally of what was seen of a function."""

    def __init__(self) -> None:
        self.calls = self.refused = self.ill = self.different = self.elements = 0
        self.worst = 0.0
        self.faults: list[str] = []

    @property
    def fails(self) -> bool:
        """True with a fault, or with more differing elements than the budget has."""
        return bool(self.faults) or self.different > BUDGET * self.elements


def compare(
    one: Function, operands: dict[str, Any], options: dict[str, Any], double: bool, tally: Tally, verbose: bool
) -> None:
    """One call of both."""
    import librosa

    theirs: Any = librosa
    for name in one.theirs.split("."):
        theirs = getattr(theirs, name)
    single = {key: x.astype(_SINGLE[x.dtype.kind]) for key, x in operands.items()}
    wide = {"dtype": np.float64} if one.ours == "rms" else {}  # which is float32 otherwise
    expected = called(theirs, one, operands, options | wide)
    device = {key: gp.from_numpy(x) for key, x in (operands if double else single).items()}
    result = called(getattr(gp.ops.audio, one.ours), one, device, options | (wide if double else {}))
    tally.calls += 1
    if isinstance(result, Exception) or isinstance(expected, Exception):
        if isinstance(result, Exception) and isinstance(expected, Exception):
            tally.refused += 1
            if verbose:
                print(f"refused: {one.ours} {options}: {result} | {expected}", flush=True)
        else:
            who, why = ("we refuse", result) if isinstance(result, Exception) else ("librosa refuses", expected)
            tally.faults.append(f"{who}: {type(why).__name__}: {why}")
        return
    if len(result) != len(expected):
        tally.faults.append(f"{len(result)} results, not {len(expected)}")
        return
    for number, (ours, reference) in enumerate(zip(result, expected, strict=True)):
        error, different, elements = one.verdict(ours, reference, _FINER if double and one.fine else 1.0)
        tally.different, tally.elements = tally.different + different, tally.elements + elements
        if error > 1 and not double:
            floor = called(theirs, one, single, options)
            if isinstance(floor, list) and error <= 2 * one.verdict(floor[number], reference, 1.0)[0] < np.inf:
                tally.ill += 1
                continue
        tally.worst = max(tally.worst, error)
        if error > 1:
            shapes = "" if ours.shape == reference.shape else f", shape {ours.shape}, not {reference.shape}"
            tally.faults.append(f"result {number} is {error:.3g} times as far off as allowed{shapes}")


def main() -> int:
    """Exit status 1 when a function differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round, to repeat one")
    parser.add_argument("--only", nargs="*", default=[], help="names of functions")
    parser.add_argument("--refusals", action="store_true", help="print what both refuse, too")
    asked = parser.parse_args()
    import librosa

    # Which bins a constant-Q filter keeps hangs on the last digit of a sum in single precision, and there NumPy's and
    # SciPy's transforms differ: now and then by one bin, 1e-3 of a result. With NumPy's the filters are the same bits.
    librosa.set_fftlib(np.fft)
    warnings.simplefilter("ignore")
    tallies: dict[str, Tally] = {}
    kinds: Counter[str] = Counter()
    for round_ in range(asked.first, asked.first + asked.rounds):
        random = np.random.default_rng([asked.seed, round_])
        kind, rate, y = sound(random)
        kinds[kind] += 1
        arrays = inputs(y, rate, random)
        for number, one in enumerate(FUNCTIONS):
            random = np.random.default_rng([asked.seed, round_, number])
            double, options = bool(random.random() < 0.3), one.drawn(random, rate)
            if asked.only and one.ours not in asked.only:
                continue
            tally = tallies.setdefault(f"{one.ours}({', '.join(one.given)})", Tally())
            before = len(tally.faults)
            compare(one, {key: arrays[what] for key, what in one.given.items()}, options, double, tally, asked.refusals)
            for fault in tally.faults[before:]:
                of = f"round {round_}, {kind}, {rate:g} Hz, {y.shape}, {'float64' if double else 'float32'}"
                print(f"{of}: {one.ours} {options}: {fault}", flush=True)
    print(f"{asked.rounds} rounds, seed {asked.seed}: {dict(kinds)}")
    print(f"{'function':32} {'calls':>6} {'refused':>8} {'ill':>5} {'worst':>9} {'differing elements':>20}")
    for name, tally in tallies.items():
        share = f"{tally.different} of {tally.elements}" if tally.elements else ""
        verdict = "FAILS" if tally.fails else ""
        print(f"{name:32} {tally.calls:6} {tally.refused:8} {tally.ill:5} {tally.worst:9.3g} {share:>20} {verdict}")
    return int(any(tally.fails for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(main())
