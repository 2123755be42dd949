"""Where a test of operations cannot take each of operation_backend's ways: those it takes, as marks of the test."""

from __future__ import annotations

import pytest

# What needs hundreds of kernels: on the simulator each is compiled for the test that launches it.
WITHOUT_KERNELS = pytest.mark.parametrize(
    "operation_backend", ["numpy", pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)
KERNELS_ALONE = pytest.mark.parametrize("operation_backend", ["kernels"], indirect=True)
