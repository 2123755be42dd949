"""The corrected kernels of the table of bugs compute what NumPy says, on either backend."""

from __future__ import annotations

import pytest
from bug_runs import agrees, kernel, launch
from bugs import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_corrected_kernel_is_right(backend_name: str, bug: Bug) -> None:
    agrees(bug, launch(kernel(bug, fixed=True), bug))
