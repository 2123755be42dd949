"""examples/plugin, built and installed as a user would, into a folder of its own; nothing is fetched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from llm.tiny import CONFIGS, MemoryCheckpoint, model, tensors

import pygpukit as gp
from pygpukit.llm.weights import from_checkpoint

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "installed"), "./source"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder / "installed"))
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygpukit_example"]:
        del sys.modules[name]


def test_the_template_is_listed_and_within_its_families(example: None) -> None:
    ours = {one.name: one for one in gp.plugins.list() if one.distribution == "pygpukit-example 1.0"}
    assert {"example-rmsnorm", "example", "example_llama", "example-small-first"} <= set(ours)
    reports = gp.plugins.check("example")
    assert [report.operation.replaces for report in reports] == ["rmsnorm", "softmax"]
    assert all(report.ok and report.calls == 15 and not report.refused for report in reports), reports


def test_the_template_replaces_an_operation(example: None) -> None:
    with gp.plugins.replace({"rmsnorm": "example-rmsnorm"}) as replacement:
        assert str(replacement.operations["rmsnorm"]).startswith("example-rmsnorm of pygpukit-example 1.0 (other bits")
        out = gp.zeros((1, 2))
        assert gp.rmsnorm(gp.ones((1, 2)), gp.ones(2), 0.0, out=out) is out
        assert out.to_numpy().tolist() == [[1.0, 1.0]]


def test_a_model_of_the_templates_architecture_runs_with_its_norm(example: None) -> None:
    config = {**CONFIGS["llama"], "model_type": "example_llama"}
    checkpoint = MemoryCheckpoint(config, tensors(CONFIGS["llama"], 0))
    ours = from_checkpoint(checkpoint, dtype="float32", replace="example")
    assert list(ours.replaced) == ["rmsnorm"]  # of the backend's two, the one that a model has a place for
    expected = model("llama").generate([1, 5, 2], max_new_tokens=4, temperature=0.0)
    assert ours.generate([1, 5, 2], max_new_tokens=4, temperature=0.0) == expected


def test_the_templates_policy_raises_small_tasks_and_refuses_large_ones(example: None) -> None:
    with gp.scheduler.Scheduler(total_memory="1GB") as scheduler:
        task = scheduler.submit(lambda: 1, memory="1MB", policy="example-small-first")
        assert task.result() == 1 and scheduler.stats(task.id).priority == 1
        with pytest.raises(gp.TaskRejectedError, match="more than half"):
            scheduler.submit(lambda: 1, memory="600MB", policy="example-small-first")
