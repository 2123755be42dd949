"""Runs the exact cases of the suite on the simulated device: `python -m corpus.simulate SEED FILE.npz`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from corpus.case import Array
from corpus.cases import CASES


def simulated(seed: int, folder: Path) -> dict[str, dict[str, Array]]:
    """What the simulator computes, by case and array: for a process that is itself on a device."""
    file = folder / "simulated.npz"
    tests = Path(__file__).resolve().parent.parent
    path = os.pathsep.join(part for part in (str(tests), os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", "corpus.simulate", str(seed), str(file)], env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"the suite does not run on the simulator: {done.stderr}")
    results: dict[str, dict[str, Array]] = {case.name: {} for case in CASES}
    with np.load(file) as arrays:
        for key in arrays.files:
            case, _, name = key.rpartition("|")
            results[case][name] = arrays[key]
    return results


def main(seed: int, file: str) -> None:
    arrays = {}
    for case in CASES:
        if case.exact:
            for name, value in case.run(case.arguments(seed)).items():
                arrays[f"{case.name}|{name}"] = value
    np.savez(file, **arrays)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
