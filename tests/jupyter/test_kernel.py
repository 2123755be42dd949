"""In a real ipykernel: the control channel answers while a cell is busy, and what a %%cuda cell publishes is stable."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("ipykernel")
import ipykernel
from jupyter_client.manager import start_new_kernel

BUSY_S = 3.0
ANSWER_S = 1.0
CELL = """%%cuda
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    manager, made = start_new_kernel(startup_timeout=60)
    outputs = run(made, "%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(1000)")
    assert outputs == [], "loading prints nothing"
    yield made
    made.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> list[dict[str, Any]]:
    """The outputs of a cell: content of stream, display, result and error messages."""
    number = client.execute(code)
    outputs = []
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != number:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return outputs
        if message["msg_type"] in ("stream", "display_data", "execute_result", "error"):
            outputs.append(message["content"])


def ask(client: Any, comm: str, subshell: str, request: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The answer to a control request, and the seconds it took."""
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": request})
    message["header"]["subshell_id"] = subshell
    start = time.monotonic()
    client.shell_channel.send(message)
    while True:
        answer = client.get_iopub_msg(timeout=30)
        if answer["msg_type"] == "comm_msg" and answer["content"]["comm_id"] == comm:
            return answer["content"]["data"], time.monotonic() - start


@pytest.mark.skipif(int(ipykernel.__version__.split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_control_requests_are_answered_while_a_cell_is_busy(client: Any) -> None:
    client.control_channel.send(client.session.msg("create_subshell_request"))
    subshell = client.get_control_msg(timeout=30)["content"]["subshell_id"]
    opening = client.session.msg("comm_open", {"comm_id": "test", "target_name": "pygpukit.control.v1", "data": {}})
    opening["header"]["subshell_id"] = subshell
    client.shell_channel.send(opening)
    start = time.monotonic()
    client.execute(f"import time; time.sleep({BUSY_S})")
    for number, action in enumerate(("hello", "status", "snapshot", "nonsense")):
        answer, seconds = ask(client, "test", subshell, {"id": number, "action": action, "args": {}})
        assert answer["id"] == number
        assert answer["ok"] is (action != "nonsense")
        assert seconds < ANSWER_S
    assert time.monotonic() - start < BUSY_S, "the cell must still be running"
    assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"


def test_a_cell_publishes_the_same_bundle_every_time(client: Any) -> None:
    bundles = [outputs[0]["data"] for outputs in (run(client, CELL) for _ in range(3))]
    foot = re.compile(r'<p class="gk-foot.*?</p>', re.DOTALL)  # says how long the compile took, and where it was found
    pages = [foot.sub("", bundle.pop("text/html")) for bundle in bundles]
    assert pages[0] == pages[1] == pages[2] != ""
    assert bundles[0] == bundles[1] == bundles[2]
    assert bundles[0]["text/plain"] == "scale(float* x, float factor, int n)"
    assert set(bundles[0]) == {"text/plain"}
    outputs = run(client, "scale(x, factor=0.5, n=x.size)\nprint(float(x.to_numpy().sum()))")
    assert "".join(output["text"] for output in outputs) == "500.0\n"


def test_a_broken_cell_is_an_error_output(client: Any) -> None:
    (output,) = run(client, CELL.replace("*= factor", "*= missing"))
    assert output["ename"] == "CudaCompileError"
    assert output["traceback"][0].startswith("cell:4:")
    assert len(output["traceback"]) <= 15


def test_allocations_are_attributed_to_the_cells_line(client: Any) -> None:
    run(client, "# a comment\n\nowned = gp.zeros(12345)")
    code = (
        "from pygpukit import _core\n"
        "row = next(row for row in _core.pool_blocks(0) if row[0] == owned.block)\n"
        "print(_core.name(row[5]) != '', row[6])"
    )
    assert "".join(output["text"] for output in run(client, code)) == "True 3\n"
