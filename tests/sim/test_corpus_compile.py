"""Every kernel of the suite compiles with NVRTC for the oldest and the newest supported devices."""

from __future__ import annotations

import pytest
from corpus.case import Case
from corpus.cases import CASES

from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

pytestmark = pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")


@pytest.mark.turns(4)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_kernel_compiles(case: Case, arch: str) -> None:
    expressions = [case.kernel] if "<" in case.kernel else []
    image = compile_source(
        case.source, name=case.file, options=case.options, defines=case.defines, arch=arch, name_expressions=expressions
    )
    assert image.image
    assert "warning" not in image.log, image.log
