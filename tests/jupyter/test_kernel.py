"""In a real ipykernel: the control channel answers while a cell is busy, and what a %%cuda cell publishes is stable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
import ipykernel
from kernel_client import Page, kernel, until_there

CELL = """%%cuda
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with kernel() as made:
        made.run("x = gp.ones(1000)")
        yield made


@pytest.mark.skipif(int(ipykernel.__version__.split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_control_requests_are_answered_while_a_cell_is_busy(page: Page, tmp_path: Path) -> None:
    page.open_control()
    number = page.begin(until_there(tmp_path / "go"))
    for action in ("hello", "status", "snapshot", "nonsense"):
        assert page.request(action, {})["ok"] is (action != "nonsense")
    assert page.busy(number)
    (tmp_path / "go").touch()
    page.finish(number)
    assert page.outputs(number) == []


SETTING = """
from pygpukit._core import native
from pygpukit.telemetry import sampler as telemetry
from pygpukit.scheduler import Scheduler
class Subscriber:
    visible, since, since_name, frames = True, 0, 0, 0
    def send_frame(self, frame): self.frames += 1
subscriber, go, one = Subscriber(), gp.zeros(1, "int32"), gp.ones(1, "int32")
def release(path, frames):
    while not os.path.exists(path) or subscriber.frames < frames: time.sleep(0.01)
    with gp.Stream(): native.copy(go, one)
scheduler = Scheduler(workers=1, start=False)
unwanted, wanted = scheduler.submit(int, name="unwanted"), scheduler.submit(int, name="wanted")
telemetry.add_sink(subscriber)
"""
HOLD = "%%cuda\n__global__ void hold(volatile int* go) { while (go[0] == 0) { } }"
ONE_CALL = """
threading.Thread(target=release, args=({path!r}, subscriber.frames + 5)).start()
hold[1, 1](go)
gp.synchronize()
"""


@pytest.mark.skipif(int(ipykernel.__version__.split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_controls_act_and_frames_come_while_the_main_thread_is_in_one_native_call(page: Page, tmp_path: Path) -> None:
    page.open_control()
    for code in ("import os" + SETTING, HOLD):
        page.run(code)
    number = page.begin(ONE_CALL.format(path=str(tmp_path / "go")))

    def ask(action: str, **args: object) -> dict[str, Any]:
        answer = page.request(action, args)
        assert answer["ok"], answer
        return dict(answer["result"])

    tasks = {task["name"]: task["id"] for task in ask("snapshot")["tasks"]}
    assert ask("pause")["paused"] == 1
    assert ask("cancel", task=tasks["unwanted"]) == {"cancelled": True}
    ask("quota", limit="1GiB")
    ask("share", task=tasks["wanted"], share="30 %")
    ask("priority", task=tasks["wanted"], priority=5)
    after = ask("snapshot")
    by_name = {task["name"]: task for task in after["tasks"]}
    assert after["pool"]["quota"] == 1 << 30
    assert by_name["unwanted"]["phase"] == "Cancelled"
    assert (by_name["wanted"]["share_ppm"], by_name["wanted"]["priority"]) == (300_000, 5)
    assert page.busy(number)
    (tmp_path / "go").touch()
    page.finish(number)  # which it does once five frames more have come
    assert page.outputs(number) == []
    page.run("telemetry.remove_sink(subscriber); scheduler.close()")


SHOWN = """
from pygpukit.jupyter.widgets import SchedulerWidget
view, ended = SchedulerWidget(), threading.Event()
def publish():
    while not ended.is_set(): view.tell_page({"type": "frame"}, bytes(100_000)); time.sleep(0.001)
threading.Thread(target=publish).start()
print(view.model_id)
"""


@pytest.mark.skipif(int(ipykernel.__version__.split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_a_press_is_answered_in_a_busy_cell_while_another_thread_publishes_on_the_same_comm(
    page: Page, tmp_path: Path
) -> None:
    model = page.text(page.run(SHOWN)).strip()
    for at in range(60):  # what is published comes from the cell until the page has said something from its subshell
        number = page.begin(until_there(tmp_path / str(at)))
        answer = page.press(model, "controls")
        assert "pause_task" in answer["result"]["actions"]
        assert page.busy(number)
        (tmp_path / str(at)).touch()
        page.finish(number)
    page.run("ended.set(); view.close()")


def test_a_cell_publishes_the_same_bundle_every_time(page: Page) -> None:
    bundles = [page.outputs(page.run(CELL))[0]["data"] for _ in range(3)]
    foot = re.compile(r'<p class="gk-foot.*?</p>', re.DOTALL)  # says how long the compile took, and where it was found
    pages = [foot.sub("", bundle.pop("text/html")) for bundle in bundles]
    assert pages[0] == pages[1] == pages[2] != ""
    assert bundles[0] == bundles[1] == bundles[2]
    assert bundles[0]["text/plain"] == "scale(float* x, float factor, int n)"
    assert set(bundles[0]) == {"text/plain"}
    assert page.text(page.run("scale(x, factor=0.5, n=x.size)\nprint(float(x.to_numpy().sum()))")) == "500.0\n"


def test_a_broken_cell_is_an_error_output(page: Page) -> None:
    (output,) = page.outputs(page.run(CELL.replace("*= factor", "*= missing")))
    assert output["ename"] == "CudaCompileError"
    assert output["traceback"][0].startswith("cell:4:")
    assert len(output["traceback"]) <= 15


def test_allocations_are_attributed_to_the_cells_line(page: Page) -> None:
    page.run("# a comment\n\nowned = gp.zeros(12345)")
    code = (
        "from pygpukit import _core\n"
        "row = next(row for row in _core.pool_blocks(0) if row[0] == owned.block)\n"
        "print(_core.name(row[5]) != '', row[6])"
    )
    assert page.text(page.run(code)) == "True 3\n"
