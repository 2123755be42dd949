"""The kernel suite against NumPy on fresh random inputs; on a device also bit for bit against the simulator, which in
checked mode finds nothing in it."""

from __future__ import annotations

import os
import secrets

import pytest
from corpus.case import KERNELS, Array, Case
from corpus.cases import CASES
from corpus.simulate import simulated

SEED = int(os.environ.get("PYGPUKIT_CORPUS_SEED") or secrets.randbits(32))
EACH = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
EXACT = [case for case in CASES if case.exact]


def test_the_suite_is_complete() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60
    assert {case.file for case in CASES} == {path.name for path in KERNELS.iterdir()}
    for path in KERNELS.iterdir():
        assert path.read_text().startswith(f"// {path.name}: "), f"{path.name} lacks a first line that says what it is"


@EACH
def test_a_kernel_computes_what_numpy_does(case: Case, backend_name: str) -> None:
    arguments = case.arguments(SEED)
    expected = case.expected(arguments)
    assert not case.difference(case.run(arguments), expected), f"PYGPUKIT_CORPUS_SEED={SEED}"


@EACH
def test_checked_mode_finds_nothing(case: Case) -> None:
    arguments = case.arguments(SEED)
    found = case.run(arguments, check=True)
    assert not case.difference(found, case.expected(arguments)), f"PYGPUKIT_CORPUS_SEED={SEED}"


@pytest.fixture(scope="module")
def on_the_simulator(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Array]]:
    return simulated(SEED, tmp_path_factory.mktemp("simulated"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", EXACT, ids=[case.name for case in EXACT])
def test_the_device_gives_the_bits_of_the_simulator(case: Case, on_the_simulator: dict[str, dict[str, Array]]) -> None:
    found = case.normalised(case.run(case.arguments(SEED)))
    expected = case.normalised(on_the_simulator[case.name])
    assert found.keys() == expected.keys()
    for name, value in found.items():
        same = value.tobytes() == expected[name].tobytes()
        assert same, f"{name}, PYGPUKIT_CORPUS_SEED={SEED}"
