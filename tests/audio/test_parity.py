"""Every spectral function beside librosa 0.11.0 in float64: what it computed is in goldens/spectral.npz
(make_goldens_spectral.py), the tolerances are with the cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audio.material import given, thinned
from audio.spectral_cases import CASES, Case

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")

GOLDEN = np.load(Path(__file__).parent / "goldens" / "spectral.npz")
_SINGLE = {"f": "float32", "c": "complex64"}


def computed(case: Case, double: bool = False) -> list[np.ndarray]:
    """Our results for a case, in single precision or in double."""
    inputs: dict[str, Any] = {}
    for key, name in case.given.items():
        values = given(name)
        inputs[key] = gp.from_numpy(values if double else values.astype(_SINGLE[values.dtype.kind]))
    first = [inputs.pop(next(iter(inputs)))] if case.first else []
    results = getattr(gp.ops.audio, case.ours)(*first, **inputs, **case.options)
    results = results if isinstance(results, tuple) else (results,)
    return [x.to_numpy() if isinstance(x, gp.GPUArray) else np.asarray(x) for x in results]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_function_computes_what_librosa_does(case: Case) -> None:
    assert case.near or case.within or case.equal
    for i, found in enumerate(computed(case)):
        key = f"{case.name} {i}"
        assert found.shape == tuple(GOLDEN[f"{key} shape"])
        values, wanted, norm = thinned(found), GOLDEN[f"{key} values"], GOLDEN[f"{key} norm"]
        assert np.isfinite(values).all()
        if case.near is not None:
            scale = np.sqrt(np.mean(np.abs(wanted) ** 2))
            assert np.sqrt(np.mean(np.abs(values - wanted) ** 2)) <= case.near * scale
            wide = found.ravel().astype(np.result_type(found, np.float64))
            assert abs(np.linalg.norm(wide) - norm) <= case.near * norm
        if case.within is not None:
            assert np.abs(values - wanted).max() <= case.within
        if case.equal is not None:
            assert np.mean(np.isclose(values, wanted, rtol=1e-6, atol=0)) >= case.equal


def test_the_reference_has_the_cases_and_nothing_else() -> None:
    assert {key.rsplit(" ", 2)[0] for key in GOLDEN.files} == {case.name for case in CASES}
