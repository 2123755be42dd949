"""What %%cuda promises, one test a promise. Details are tested beside it, where a test says so."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_runner import AXPY, COPY, LAUNCH, compiles, cuda, failure, records, run

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import CompileError, KernelArgumentError
from pygpukit.jit import JITKernel
from pygpukit.jit.toolchain import nvrtc_candidates
from pygpukit.jupyter.errors import VerificationError

pytest.importorskip("ipykernel")
from kernel_client import Page, kernel

NO_DRIVER = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from pygpukit._core import native
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "pygpukit")
result = shell.run_cell(sys.argv[1], store_history=True)
result.raise_error()
print(json.dumps([repr(result.result), native.backend_name()]))
"""
FRESH = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
sys.path.insert(0, sys.argv[2])
from cell_runner import compiles
from pygpukit import _core
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "pygpukit")
since = _core.ring_head()
for line in json.loads(sys.argv[1]):
    before = compiles(since)
    shell.run_cell(line, store_history=True).raise_error()
    print("compiled", compiles(since) - before)
"""
# A dependent chain of multiply-adds that says its number at its end, and a kernel that waits for a word of the host.
SAY = """%%cuda
extern "C" __global__ void say(int number, int steps, float* out) {
    float x = out[0];
    for (int i = 0; i < steps; ++i) x = x * 0.999f + 0.001f;
    out[0] = x;
    printf("line %d\\n", number);
}
extern "C" __global__ void hold(volatile int* go) { while (go[0] == 0); }
"""
# In the kernel: lets the device go on as soon as a file is there, whatever the main thread waits for.
RELEASE = """
import os
from pygpukit._core import native
x, one = gp.ones(1), gp.ones(1, dtype="int32")
def release(go, path):
    while not os.path.exists(path):
        time.sleep(0.01)
    with gp.Stream():
        native.copy(go, one)
"""


def child(code: str, *arguments: str, **environment: str) -> list[str]:
    """What a fresh Python process printed, without what a shell shows of results."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_01_a_cell_launches_on_existing_arrays_without_a_copy(shell: Any) -> None:
    host = np.arange(1000, dtype=np.float32)
    shell.user_ns.update(x=gp.from_numpy(host), y=gp.ones(1000), z=gp.zeros(1000), n=1000)
    arrays = [shell.user_ns[name] for name in "xyz"]
    addresses = [array.device_ptr for array in arrays]
    since = _core.ring_head()
    cuda(shell, "-i x,y,a=2.5,n=n -o z")
    assert len(records(since, LAUNCH)) == 1
    assert records(since, COPY) == []
    assert [array.device_ptr for array in arrays] == addresses
    assert all(shell.user_ns[name] is array for name, array in zip("xyz", arrays, strict=True))
    np.testing.assert_array_equal(arrays[2].to_numpy(), host * np.float32(2.5) + 1)


def test_02_each_kernel_is_a_python_object(shell: Any, capsys: Any) -> None:
    cuda(
        shell, "", AXPY + 'extern "C" __global__ void other(int* x) { __shared__ int s[4]; s[0] = x[0]; x[0] = s[0]; }'
    )
    axpy, other = shell.user_ns["axpy"], shell.user_ns["other"]
    assert isinstance(axpy, JITKernel) and isinstance(other, JITKernel)
    assert list(inspect.signature(axpy).parameters) == ["x", "y", "z", "a", "n"]
    assert isinstance(axpy.registers, int) and isinstance(axpy.shared_bytes, int)
    assert axpy.ptx is None, "the simulated device has no PTX; on a GPU it is text"
    x = gp.ones(8)
    axpy[1, 8](x, x, x, 2.0, 8)
    assert x.to_numpy().tolist() == [3.0] * 8
    run(shell, "axpy?")
    shown = capsys.readouterr().out
    assert "CUDA kernel axpy(const float* x, const float* y, float* z, float a, int n)" in shown
    since = _core.ring_head()
    with pytest.raises(KernelArgumentError) as refused:
        axpy(x, x)
    assert "axpy" in str(refused.value)
    with pytest.raises(KernelArgumentError) as refused:
        axpy(x, gp.ones(8, dtype="float64"), x, 2.0, 8)
    assert refused.value.parameter == "y"
    assert records(since, LAUNCH) == []


def test_03_an_unchanged_cell_compiles_nothing_and_a_changed_one_does(shell: Any, tmp_path: Path) -> None:
    """The race of processes is in tests/jit: see test_kernel_cache.py."""
    helper = str(Path(__file__).parent)
    cell = f"%%cuda\n{AXPY}"
    header = "%%cuda --name h.cuh\n#define SCALE 2"
    cells = [
        cell,
        cell,
        cell.replace("%%cuda", "%%cuda -D OTHER=1"),
        header,
        cell.replace("%%cuda", "%%cuda --with h.cuh"),
    ]
    first = child(FRESH, json.dumps(cells), helper, PYGPUKIT_CACHE_DIR=str(tmp_path))
    assert [line for line in first if line.startswith("compiled")] == [f"compiled {n}" for n in (1, 0, 1, 1, 1)]
    again = child(FRESH, json.dumps(cells), helper, PYGPUKIT_CACHE_DIR=str(tmp_path))
    assert [line for line in again if line.startswith("compiled")] == ["compiled 0"] * 5, (
        "a fresh process, the same disk"
    )
    cells[3] = header.replace("2", "3")
    changed = child(FRESH, json.dumps(cells), helper, PYGPUKIT_CACHE_DIR=str(tmp_path))
    assert [line for line in changed if line.startswith("compiled")] == [f"compiled {n}" for n in (0, 0, 0, 1, 1)]
    if any(Path(path).is_file() for path in nvrtc_candidates()):
        since = _core.ring_head()
        for arch in ("sm_90a", "sm_80", "sm_90a"):
            cuda(shell, f"--no-launch --arch {arch}")
        assert compiles(since) == 2, "one for each architecture"


def test_04_a_compile_error_fails_the_cell_on_its_lines(shell: Any, capsys: Any) -> None:
    """Of an included cell: test_named_cells.py."""
    broken = AXPY.replace("a * x[i]", "missing * x[i]") + "int f() { return 1 2; }\n" * 40
    error = failure(shell, "", broken)
    assert isinstance(error, CompileError)
    first = error.diagnostics[0]
    assert (first.file, first.line, first.severity) == ("cell", 4, "error")
    assert "missing" in first.message and first.column == broken.splitlines()[2].index("missing") + 1
    shown = capsys.readouterr().out.rstrip().splitlines()
    assert len(shown) <= 15 and shown[0].startswith("cell:4:")
    assert "more error" in shown[-1]
    assert not any("pygpukit" in line or "Traceback" in line for line in shown)


def test_06_an_out_of_bounds_access_is_contained(shell: Any) -> None:
    """With other faults, and what a real device can do after one: the tests of faults and of isolated launches."""
    shell.user_ns.update(x=gp.ones(8), y=gp.ones(8), z=gp.zeros(8))
    error = failure(shell, "-i x,y,a=2,n=8 -o z", AXPY.replace("z[i] =", "z[i - (1LL << 40)] ="))
    assert isinstance(error, gp.DriverError) and "axpy" in str(error) and "cell:4" in str(error)
    cuda(shell, "-i x,y,a=2,n=8 -o z")
    assert shell.user_ns["z"].to_numpy().tolist() == [3.0] * 8


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with kernel() as made:
        made.run(SAY)
        made.run(RELEASE)
        yield made


@pytest.mark.parametrize("launching", ["the cell", "a thread", "a thread that goes on"])
def test_07_what_a_long_chain_prints_appears_in_its_cell_while_it_runs(
    page: Page, launching: str, tmp_path: Path
) -> None:
    chain = "for number in range(6): say[1, 1](number, 1000, x)\n    hold[1, 1](go)\n"
    chain += "    for number in range(6, 12): say[1, 1](number, 1000, x)\n"
    path = str(tmp_path / "go")
    start = f"go = gp.zeros(1, dtype='int32')\nthreading.Thread(target=release, args=(go, {path!r})).start()\n"
    start += f"def chain():\n    {chain}"
    code = {
        "the cell": "chain()\ngp.synchronize()",
        "a thread": "thread = threading.Thread(target=chain); thread.start(); thread.join()\ngp.synchronize()",
        "a thread that goes on": "threading.Thread(target=chain).start()",
    }[launching]
    number = page.send(start + code)
    expected = [f"line {at}\n" for at in range(12)]
    page.listen(lambda _: page.text(number) == "".join(expected[:6]))
    assert page.busy(number) or launching == "a thread that goes on"
    (tmp_path / "go").touch()
    page.listen(lambda _: page.text(number) == "".join(expected))
    page.finish(number)
    assert page.text(page.run("gp.synchronize()")) == "", "nothing is left for the next cell"


def test_08_an_interrupt_returns_the_prompt_and_says_what_still_runs(page: Page) -> None:
    queue = "for number in range(100): say[1, 1](number, 2_000_000_000, x)"  # many minutes: nobody waits for its end
    number = page.send(f"{queue}\nprint('queued')\ngp.synchronize()")
    page.listen(lambda _: "queued" in page.text(number))
    page.manager.interrupt_kernel()
    page.finish(number)
    assert "KeyboardInterrupt" in [one.get("ename") for one in page.outputs(number)]
    assert page.text(number, "stderr") == "interrupted; nothing is left running on the device\n"
    number = page.send(f"with gp.Stream() as stream:\n    {queue}\nprint('queued')\ntime.sleep(600)")
    page.listen(lambda _: "queued" in page.text(number))
    page.manager.interrupt_kernel()
    page.finish(number)
    said = page.text(number, "stderr")
    assert said.startswith("interrupted; still running on the device: stream ")
    assert "say (100 launches)" in said
    page.run(
        "from pygpukit._core import native; native.sim_cancel()\ntry:\n    gp.synchronize()\nexcept Exception: pass"
    )
    assert "1.0" in page.text(page.run("say[1, 1](0, 1, x); gp.synchronize(); print(round(x.item(), 3))"))


def test_09_outputs_are_compared_and_launches_measured(shell: Any, capsys: Any) -> None:
    """Every form of reference, tolerance and measurement: test_launch.py. Of the measurement itself: test_bench.py."""
    shell.user_ns.update(x=gp.ones(1000), y=gp.ones(1000), z=gp.zeros(1000), n=1000)
    result = cuda(shell, "-i x,y,a=2,n=n -o z --verify a*x+y --bench --bytes 3*4*n --flops 2*n")
    assert result.verify[0].passed and result.verify[0].max_abs_error == 0
    assert result.bench.median_us > 0 and result.bench.gbps is not None and len(result.bench.samples) > 1
    assert not any(text in repr(result) for text in (" us", " ms", "GB/s"))
    shell.user_ns["step"] = 0.5 * (np.arange(1000) >= 7)
    error = failure(shell, "-i x,y,a=2,n=n -o z --verify a*x+y+step")
    assert isinstance(error, VerificationError)
    (one,) = error.verifications
    assert one.first_bad == (7,) and one.max_abs_error == 0.5
    assert one.max_rel_error == pytest.approx(0.5 / 3.5)
    assert "first at z[7]: 3.0, expected 3.5" in capsys.readouterr().out


def test_10_the_card_is_static_html(shell: Any) -> None:
    """Its figures, listings and links: test_card.py."""
    html = cuda(shell, "")._repr_html_()
    assert "axpy" in html and "<script" not in html and "http" not in html


def test_11_a_hundred_runs_give_one_text(shell: Any) -> None:
    shell.user_ns.update(x=gp.ones(64), y=gp.ones(64), n=64)
    line = "-i x,y,a=2,n=n -o z[n] --verify a*x+y"
    (text,) = {repr(cuda(shell, line)) for _ in range(100)}
    assert not any(word in text for word in ("0x", "/", " us", " ms"))
    for measured in ("--bench --bytes 3*4*n", "--sweep block=32,64"):
        assert len({repr(cuda(shell, f"{line} {measured}")) for _ in range(3)}) == 1


def test_12_no_launch_needs_no_driver() -> None:
    if not any(Path(path).is_file() for path in nvrtc_candidates()):
        pytest.skip("NVRTC is not installed (extra cuda13)")
    cell = f"%%cuda --no-launch --arch sm_90a -i x,y,a=2,n=n -o z --verify a*x+y --bench\n{AXPY}"
    text, opened = json.loads(child(NO_DRIVER, cell, PYGPUKIT_BACKEND="")[-1])
    assert text.splitlines()[0] == "axpy(const float* x, const float* y, float* z, float a, int n)"
    assert "sm_90a, not loaded" in text
    assert opened is None, "no backend was opened"


def test_13_completion_knows_cuda_and_no_python(shell: Any) -> None:
    """Every place in a cell: test_completion.py."""
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        flags = [one.text for one in shell.Completer.completions("%%cuda --", 9)]
        words = [one.text for one in shell.Completer.completions("%%cuda\n__global__ void k() { i", 29)]
    assert "--verify" in flags and all(flag.startswith("--") for flag in flags)
    assert "int" in words and not {"import", "isinstance", "id", "input"} & set(words)


def test_14_reloading_leaves_one_handler_of_each_kind(shell: Any) -> None:
    """Against the shell before loading: test_magics.py."""

    def installed() -> dict[str, int]:
        magics = [one for one in shell.configurables if type(one).__name__ == "CudaMagics"]
        hooks = {name: len(found) for name, found in shell.events.callbacks.items()}
        return {"configurables": len(magics), "matchers": len(shell.Completer.custom_matchers), **hooks}

    before = installed()
    assert before["configurables"] == before["matchers"] == 1
    for _ in range(2):
        shell.run_line_magic("reload_ext", "pygpukit")
    assert installed() == before
    shell.run_line_magic("unload_ext", "pygpukit")
    assert installed()["configurables"] == installed()["matchers"] == 0
    assert "cuda" not in shell.magics_manager.magics["cell"]
    shell.run_line_magic("load_ext", "pygpukit")
