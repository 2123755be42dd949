"""%%cuda on a real device: launches without copies, comparisons, measurements, printf and Ctrl-C in a real kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cell_runner import AXPY, COPY, LAUNCH, cuda, failure, records

import pygpukit as gp
from pygpukit import _core
from pygpukit.jupyter.errors import VerificationError
from pygpukit.worker import counting

pytest.importorskip("ipykernel")
from kernel_client import Page, ends, kernel

pytestmark = pytest.mark.gpu

LINES = 40
SAY = """%%cuda
extern "C" __global__ void say(int number, int steps, float* out) {
    float x = out[0];
    for (int i = 0; i < steps; ++i) x = x * 0.999f + 0.001f;
    out[0] = x;
    printf("line %d\\n", number);
}
"""
N = 1 << 20


@pytest.fixture
def host(shell: Any) -> dict[str, Any]:
    """x, y, z and n in the notebook."""
    assert gp.backend() == "cuda", gp.backend().reason
    rng = np.random.default_rng(0)
    made = {name: rng.standard_normal(N).astype(np.float32) for name in ("x", "y")}
    shell.user_ns.update({name: gp.from_numpy(value) for name, value in made.items()}, z=gp.zeros(N), n=N, np=np)
    return made


def test_a_cell_launches_without_a_copy(shell: Any, host: dict[str, Any]) -> None:
    addresses = [shell.user_ns[name].device_ptr for name in "xyz"]
    since = _core.ring_head()
    result = cuda(shell, "-i x,y,a=2,n=n -o z")
    assert len(records(since, LAUNCH)) == 1 and records(since, COPY) == []
    assert [shell.user_ns[name].device_ptr for name in "xyz"] == addresses
    np.testing.assert_allclose(shell.user_ns["z"].to_numpy(), 2 * host["x"] + host["y"], rtol=1e-6, atol=1e-6)
    kernel = result.kernels["axpy"]
    assert kernel.registers > 0 and ".visible .entry" in kernel.ptx


def test_outputs_are_compared_and_launches_measured(shell: Any, host: dict[str, Any]) -> None:
    shell.user_ns["stream"] = gp.Stream()
    result = cuda(
        shell, "-i x,y,a=2,n=n -o z --stream stream --verify a*x+y --bench --bytes 12*n --flops 2*n --block 128"
    )
    assert result.verify[0].passed and result.bench.backend == "cuda"
    assert 0 < result.bench.percent_of_limit < 200
    assert str(result.launch) == "axpy[8192, 128]"
    error = failure(shell, "-i x,y,a=2,n=n -o z --verify a*x+y+(np.arange(n)==77)")
    assert isinstance(error, VerificationError) and error.verifications[0].first_bad == (77,)


def test_counts_rate_what_the_gpu_was_measured_at(shell: Any, host: dict[str, Any]) -> None:
    result = cuda(shell, "-i x,y,a=2,n=n -o z --verify a*x+y --bench --count")
    assert (result.bench.backend, result.bench.bytes, result.bench.flops) == ("cuda", 12 * N, 2 * N)
    assert 0 < result.bench.percent_of_limit < 200
    counting._worker.kill()


def test_a_sweep_reports_what_the_device_refuses(shell: Any, host: dict[str, Any]) -> None:
    shell.run_cell("%config CudaMagics.bench_ms = 50")
    result = cuda(shell, "-i x,y,a=2,n=n -o z --sweep block=128,2048 --sweep SCALE=1,2 --verify SCALE*a*x+y",
                  AXPY.replace("a *", "SCALE * a *"))  # fmt: skip
    assert [point.bench is not None for point in result.sweep] == [True, True, False, False]
    assert all(point.error for point in result.sweep[2:])


def test_an_output_with_a_shape_sums(shell: Any, host: dict[str, Any]) -> None:
    body = "__global__ void count(const float* x, int n, int* positive) {\n"
    body += "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n && x[i] > 0) atomicAdd(positive, 1);\n}"
    for _ in range(2):
        cuda(shell, "-i x,n -o positive[1] --verify (x>0).sum() --bench", body)
        assert shell.user_ns["positive"].item() == int((host["x"] > 0).sum())


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with kernel() as made:
        made.run(SAY)
        assert made.text(made.run("x = gp.ones(1)\nprint(gp.backend())")) == "cuda\n"
        yield made


@pytest.mark.parametrize("launching", ["the cell", "a thread"])
def test_printf_appears_in_its_cell_while_a_chain_runs(page: Page, launching: str) -> None:
    chain = f"for number in range({LINES}): say[1, 1](number, 20_000_000, x)\n"
    code = chain + "gp.synchronize()"
    if launching == "a thread":
        code = f"def chain():\n    {chain}thread = threading.Thread(target=chain)\nthread.start()\nthread.join()\n"
        code += "gp.synchronize()"
    number = page.send(code)
    page.listen(lambda _: "line 0\n" in page.text(number))
    assert f"line {LINES - 1}\n" not in page.text(number), "the first line must come while the chain runs"
    page.listen(lambda message: ends(message, number))
    page.run("time.sleep(0.5)")  # what goes through C's stdout takes a moment
    expected = "".join(f"line {at}\n" for at in range(LINES))
    assert page.text(number) == expected


def test_an_interrupt_says_what_still_runs(page: Page) -> None:
    number = page.send(
        f"for number in range({LINES}): say[1, 1](number, 40_000_000, x)\nprint('queued')\ngp.synchronize()"
    )
    page.listen(lambda _: "queued" in page.text(number))
    sent = time.monotonic()
    page.manager.interrupt_kernel()
    page.listen(lambda message: ends(message, number))
    assert page.said[-1][0] - sent < 1.0
    assert page.text(number, "stderr") == (
        f"interrupted; still running on the device: stream 0: say ({LINES} launches). gp.synchronize() waits for it\n"
    )
    number = page.run("gp.synchronize(); print(round(x.item(), 3))")
    page.run("time.sleep(0.5)")  # what goes through C's stdout takes a moment, and may come behind what Python prints
    said = page.text(number).splitlines()
    assert [line for line in said if not line.startswith("line ")] == ["1.0"]
    assert f"line {LINES - 1}" in said
