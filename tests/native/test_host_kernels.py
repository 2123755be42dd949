"""What the host computes of models: the promised bits with every kind of instructions, layers against float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("host_kernels_checks.py")


@pytest.mark.parametrize("kernels", ["avx512vnni", "avx512", "avx2", "plain"])
def test_every_kind_of_instructions_gives_the_same_bits(kernels: str) -> None:
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYGPUKIT_HOST_KERNELS": kernels}
    done = subprocess.run(
        [sys.executable, str(CHECKS)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    # A processor without these instructions takes the plain ones; the checks hold there, too.
    assert done.stdout.split()[-1] in (kernels, "plain")


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_bits_do_not_depend_on_the_threads(threads: str) -> None:
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYGPUKIT_HOST_THREADS": threads}
    done = subprocess.run(
        [sys.executable, str(CHECKS)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
