"""Sliced variants on the cuda path over a libcuda with host memory: assembled once, kept, and in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from mock_cuda import build, cubin, run
from sim_table import start

from pygpukit.jit.toolchain import nvrtc_candidates

needs_nvrtc = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)
PRELUDE = """
import os, threading, time
from pathlib import Path
from pygpukit._core import native
from pygpukit.core.errors import DriverError
from pygpukit.jit.launch import slicing
from pygpukit.jit.cache.store import kernel_cache
from pygpukit.jit.cache.image import Image
PTX = '''
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(
    .param .u64 k_param_0
)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [k_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd2], %r1;
    ret;
}
'''
CUBIN = Path(os.environ["MOCK_CUDA_CUBIN"]).read_bytes()
def variant(text=PTX):
    return slicing.variant_of(Image("nvrtc", "sm_90", CUBIN, text, "", {}), "k", "k", [])
def kernel():
    made = gp.jit('extern "C" __global__ void k(int* x) { x[0] = blockIdx.x; }')
    made.unit.__dict__["image"] = Image("nvrtc", "sm_90", CUBIN, PTX, "", {})
    return made
def logged(name):
    return Path(os.environ["MOCK_CUDA_LOG"]).read_text().split().count(name)
"""


class Driven:
    """Runs code in processes on the mock device, with one cache and one log."""

    def __init__(self, folder: Path) -> None:
        (folder / "cubin").write_bytes(cubin({"k": [8]}))
        self.log = folder / "log"
        self.settings = {
            "PYGPUKIT_BACKEND": "cuda",
            "PYGPUKIT_CACHE_DIR": str(folder / "cache"),
            "MOCK_CUDA_LOG": str(self.log),
            "MOCK_CUDA_CUBIN": str(folder / "cubin"),
        }

    def __call__(self, code: str, **settings: str) -> None:
        run(PRELUDE + code, build() / "mock", **self.settings, **settings)

    def calls(self, name: str) -> int:
        return sum(line.split()[0] == name for line in self.log.read_text().splitlines())


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    return Driven(tmp_path)


@needs_nvrtc
def test_a_variant_is_assembled_once_for_all_units_and_processes(driven: Driven) -> None:
    both = "kernel().sliced(2)\nvariant()\n"
    driven(both + "kernel().sliced(3)")
    assert driven.calls("cuLinkAddData") == driven.calls("cuLinkDestroy") == 1
    driven(both)
    assert driven.calls("cuLinkAddData") == 1
    driven(both, MOCK_CUDA_SM="80")
    assert driven.calls("cuLinkAddData") == 2
    driven(both, MOCK_CUDA_VERSION="12090")
    assert driven.calls("cuLinkAddData") == 3
    driven("variant(PTX.replace('%ctaid.x', '%tid.x'))")
    assert driven.calls("cuLinkAddData") == 4


def test_an_entry_that_is_no_cubin_is_made_anew(driven: Driven) -> None:
    driven("""
variant()
(key,) = kernel_cache().keys()
kernel_cache().put(key, CUBIN[:100])
variant()
assert kernel_cache().get(key, stored=True)[0] == CUBIN
""")
    assert driven.calls("cuLinkAddData") == driven.calls("cuLinkDestroy") == 2
    driven("variant()")
    assert driven.calls("cuLinkAddData") == 2


def test_a_refused_variant_says_why_and_is_not_kept(driven: Driven) -> None:
    driven("""
try:
    variant(PTX.replace("k_param_0", "nonsense"))
except DriverError as error:
    assert error.code == 218 and "cuLinkAddData failed" in str(error) and "Unexpected 'nonsense'" in str(error), error
else:
    raise SystemExit("nothing was refused")
assert not kernel_cache().keys()
""")
    assert driven.calls("cuLinkAddData") == driven.calls("cuLinkDestroy") == 1
    assert driven.calls("cuModuleLoadDataEx") == 0


@needs_nvrtc
def test_nobody_waits_for_the_linker(driven: Driven, tmp_path: Path) -> None:
    """Neither for the GIL nor for a lock. Two that assemble at once end with one module."""
    driven(
        """
one, errors = kernel(), []
one[1, 32]
def cut():
    try:
        one.sliced(2)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=cut) for _ in range(2)]
for thread in threads:
    thread.start()
while logged("cuLinkAddData") < 2:
    time.sleep(0.01)
one.unit.function(one.signature)  # is remembered under the lock
variants = dict(one.unit.sliced)
Path(os.environ["MOCK_CUDA_LINK_UNTIL"]).touch()
for thread in threads:
    thread.join()
assert not errors and not variants and list(one.unit.sliced) == ["k"], (errors, variants)
""",
        MOCK_CUDA_LINK_UNTIL=str(tmp_path / "until"),
    )
    assert driven.calls("cuLinkAddData") == driven.calls("cuLinkDestroy") == 2


def test_the_simulated_device_assembles_nothing() -> None:
    start("""
from pygpukit._core import native
from pygpukit.core.errors import DriverError
try:
    native.assemble_ptx(b".version 8.0\\0")
except DriverError as error:
    assert (error.code, error.name) == (NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED") and "has no PTX" in str(error), error
else:
    raise SystemExit("nothing was refused")
""")
