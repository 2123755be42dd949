#!/usr/bin/env python3
"""Writes goldens/signals.npz: what librosa 0.11.0 gives in float64 for every case of signal_cases.py.

In an environment of its own, with numpy, scipy and librosa==0.11.0:  python tests/audio/make_goldens_signals.py
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import librosa
import numpy as np
from signal_cases import CASES, GOLDENS, Case, called, signals

HOMES = (librosa, librosa.feature, librosa.onset, librosa.beat, librosa.effects, librosa.util)


def main() -> None:
    """All cases, in order: "<number>.<part of the result>"."""
    assert librosa.__version__ == "0.11.0", f"librosa is {librosa.__version__}; the reference is 0.11.0"
    warnings.simplefilter("ignore")
    results: dict[str, np.ndarray] = {}
    for number, case in enumerate(CASES):
        function = next(getattr(home, case.function) for home in HOMES if hasattr(home, case.function))
        for part, result in enumerate(called(_wide(case), function, signals()[case.signal])):
            results[f"{number}.{part}"] = np.asarray(result)
    GOLDENS.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS, **results)
    print(f"{GOLDENS}: {len(CASES)} cases, {GOLDENS.stat().st_size} bytes")


def _wide(case: Case) -> Case:
    """rms() computes in float32 unless told."""
    return replace(case, keywords=case.keywords | {"dtype": np.float64}) if case.function == "rms" else case


if __name__ == "__main__":
    main()
