#!/usr/bin/env python3
"""Writes what librosa 0.11.0 computes, in float64, for the cases of tests/audio: tests/audio/goldens/spectral.npz.

python tests/audio/make_goldens_spectral.py

Needs librosa==0.11.0, which pygpukit itself does not. Of each result the file has the shape, the norm and some elements
all over it (tests/audio/material.py, thinned()).
"""

from __future__ import annotations

import sys
import warnings
from operator import attrgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
TARGET = ROOT / "tests" / "audio" / "goldens" / "spectral.npz"


def main() -> int:
    """Writes all."""
    import librosa
    import numpy as np
    from audio.material import given, thinned
    from audio.spectral_cases import CASES

    if librosa.__version__ != "0.11.0":
        print(f"librosa {librosa.__version__} is installed; the reference is 0.11.0")
        return 1
    warnings.simplefilter("ignore")  # of signals shorter than a frame, and the like
    kept: dict[str, Any] = {}
    for case in CASES:
        inputs = {key: given(name) for key, name in case.given.items()}
        first = [inputs.pop(next(iter(inputs)))] if case.first else []
        results = attrgetter(case.theirs)(librosa)(*first, **inputs, **case.options)
        for i, result in enumerate(results if isinstance(results, tuple) else [results]):
            values = np.asarray(result)
            kept[f"{case.name} {i} shape"] = np.array(values.shape, np.int64)
            kept[f"{case.name} {i} norm"] = np.linalg.norm(values.ravel())
            kept[f"{case.name} {i} values"] = thinned(values)
    np.savez_compressed(TARGET, **kept)
    print(TARGET, TARGET.stat().st_size, "bytes,", len(CASES), "cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
