"""Plugins: listing them, operations replaced in a process, their errors, and what broken distributions do."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.plugin_files import distribution

import pygpukit as gp
from pygpukit import cli
from pygpukit._core import native
from pygpukit.plugins.replace import active

SOFTMAX = """
import pygpukit as gp
def softmax(x, axis=-1, *, out=None):
    return gp.softmax(x, axis, out=out)
def fails(x, axis=-1, *, out=None):
    raise OSError("the device of the plugin is gone")
EXACT = gp.plugins.Operation("softmax", softmax, "exact")
FAILS = gp.plugins.Operation("softmax", fails, "exact")
BACKEND = gp.plugins.Backend((EXACT,))
CLOSED = gp.plugins.Backend((EXACT,), lambda: "it needs an SM 12.0")
RAISES = gp.plugins.Backend((EXACT,), lambda: 1 / 0)
NUMBER = 3
"""
OPS = {name.lower(): f"softmax_plugin:{name}" for name in ("EXACT", "FAILS", "NUMBER", "ABSENT")}
BACKENDS = {name.lower(): f"softmax_plugin:{name}" for name in ("BACKEND", "CLOSED", "RAISES")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("softmax_plugin", "broken_plugin"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.fixture
def installed(place: Path) -> Path:
    distribution(place, "softmax_plugin", {"pygpukit.ops": OPS, "pygpukit.backends": BACKENDS}, SOFTMAX)
    return place


def doubled(x: gp.GPUArray, axis: int = -1, *, out: gp.GPUArray | None = None) -> gp.GPUArray:
    return gp.mul(gp.softmax(x, axis, out=out), 2.0, out=out)


DOUBLED = gp.plugins.Operation("softmax", doubled, 1e-3)


def test_plugins_are_listed_without_importing_them(installed: Path) -> None:
    ours = [one for one in gp.plugins.list() if one.distribution == "softmax_plugin 1.0"]
    assert [one.name for one in ours] == [*sorted(OPS), *sorted(BACKENDS)]
    assert {one.group for one in ours} == {"pygpukit.ops", "pygpukit.backends"}
    assert "softmax_plugin" not in sys.modules
    with pytest.raises(gp.InvalidSpecError, match=r"group='pygpukit\.op' is unknown"):
        gp.plugins.list("pygpukit.op")


@pytest.mark.parametrize("damage", ["entry_points.txt", "METADATA"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[pygpukit.ops\nx = = y", b"", b"[pygpukit.ops]\nx = !!:!!\n"])
def test_a_broken_distribution_does_not_break_the_others(installed: Path, damage: str, content: bytes) -> None:
    distribution(installed, "broken_plugin", {"pygpukit.ops": {"broken": "broken_plugin:X"}}, "raise SystemError")
    (installed / "broken_plugin-1.0.dist-info" / damage).write_bytes(content)
    assert "exact" in [one.name for one in gp.plugins.list("pygpukit.ops")]


def test_importing_the_package_reads_no_plugin(installed: Path) -> None:
    distribution(installed, "broken_plugin", {"pygpukit.ops": {"broken": "broken_plugin:X"}}, "raise SystemError")
    code = f"import sys; sys.path.insert(0, {str(installed)!r}); import pygpukit as gp; gp.ones(2)"
    code += "; print('broken_plugin' in sys.modules, 'importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_what_cannot_be_used_says_who_it_is(installed: Path) -> None:
    distribution(installed, "broken_plugin", {"pygpukit.ops": {"broken": "broken_plugin:X"}}, "raise OSError('gone')")
    cases = {
        "broken": "'broken'.*broken_plugin 1.0: it cannot be imported: OSError: gone",
        "absent": "'absent'.*softmax_plugin 1.0: it cannot be imported: AttributeError",
        "number": "softmax_plugin:NUMBER is a int; it must be a gp.plugins.Operation",
        "closed": "'closed'.*it needs an SM 12.0",
        "raises": "'raises'.*available.. raised ZeroDivisionError",
    }
    for name, message in cases.items():
        with pytest.raises(gp.PluginError, match=message) as caught:
            gp.plugins.replace(name)
        assert caught.value.plugin == name and caught.value.distribution
    with pytest.raises(gp.InvalidSpecError, match="'exatc': no such plugin; did you mean exact"):
        gp.plugins.replace("exatc")
    assert active() == {}


def test_two_plugins_of_one_name_are_refused_when_used(installed: Path) -> None:
    distribution(installed, "broken_plugin", {"pygpukit.ops": {"exact": "broken_plugin:X"}})
    with pytest.raises(gp.PluginError, match=r"2 plugins have this name, of broken_plugin 1\.0, softmax_plugin 1\.0"):
        gp.plugins.replace("exact")


def test_an_operation_is_replaced_in_a_block_for_all_threads() -> None:
    x = gp.from_numpy(np.random.default_rng().standard_normal((3, 7), dtype="float32"))
    before = gp.softmax(x).to_numpy()
    seen: list[np.ndarray] = []
    with gp.plugins.replace({"softmax": DOUBLED}) as replacement:
        thread = threading.Thread(target=lambda: seen.append(gp.softmax(x).to_numpy()))
        thread.start()
        thread.join()
        np.testing.assert_array_equal(seen[0], 2 * before)
        assert "active: softmax by doubled (other bits, at most 0.001 apart)" in repr(replacement)
        with pytest.raises(gp.InvalidSpecError, match="softmax is replaced already, by doubled"):
            gp.plugins.replace({"softmax": DOUBLED})
    np.testing.assert_array_equal(gp.softmax(x).to_numpy(), before)
    replacement.restore()
    assert "restored" in repr(replacement) and active() == {}


def test_operations_that_call_a_replaced_one_follow_it_there_and_back() -> None:
    """Their prepared calls must neither keep the built-in one nor the plugin's."""
    shapes = (3, 8), (3, 8), (8,)
    x, residual, weight = (gp.from_numpy(np.random.default_rng().standard_normal(n, dtype="float32")) for n in shapes)

    def negated(
        x: gp.GPUArray, gamma: gp.GPUArray, eps: float = 1e-5, *, out: gp.GPUArray | None = None
    ) -> gp.GPUArray:
        return gp.neg(gp.rmsnorm(x, gamma, eps, out=out), out=out)

    def twice() -> np.ndarray:
        first, again = (gp.ops.rmsnorm_residual(x, residual, weight).to_numpy() for _ in range(2))
        np.testing.assert_array_equal(first, again)
        return first

    native.prepare_calls(True)
    try:
        before = twice()
        with gp.plugins.replace({"rmsnorm": gp.plugins.Operation("rmsnorm", negated, 1.0)}):
            np.testing.assert_array_equal(twice(), -before)
        np.testing.assert_array_equal(twice(), before)
    finally:
        native.prepare_calls(None)


def test_a_plugin_that_raises_names_itself_and_the_process_goes_on(installed: Path) -> None:
    x = gp.ones(4)
    with gp.plugins.replace("fails"):
        with pytest.raises(
            gp.PluginError, match=r"plugin 'fails' of softmax_plugin 1\.0, in the place of softmax: OSError: the device"
        ) as caught:
            gp.softmax(x)
        assert isinstance(caught.value.__cause__, OSError)
        assert (caught.value.plugin, caught.value.operation) == ("fails", "softmax")
        assert gp.sum(x).item() == 4.0
    assert gp.softmax(x).to_numpy().tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, axis=-1, *, out=None: 3, "it gave int, and softmax gives an array"),
        (lambda x, axis=-1, *, out=None: gp.ones(4), "it gave another array than out="),
    ],
)
def test_what_is_no_result_is_refused(function: object, message: str) -> None:
    wrong = gp.plugins.Operation("softmax", function, "exact", name="wrong")  # type: ignore[arg-type]
    with gp.plugins.replace({"softmax": wrong}), pytest.raises(gp.PluginError, match=f"'wrong', in.*{message}"):
        gp.softmax(gp.ones(4), out=gp.ones(4))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"softmaxx": DOUBLED}, "'doubled' replaces softmax, not 'softmaxx'"),
        ({"add": gp.plugins.Operation("add", doubled, "exact")}, "add cannot be replaced"),
        (
            {"sotfmax": gp.plugins.Operation("sotfmax", doubled, "exact")},
            "no operation is called 'sotfmax'; did you mean",
        ),
        (3, "choice=3; give the name of a plugin"),
        ({"softmax": DOUBLED, "add": gp.plugins.Operation("add", doubled, "exact")}, "add cannot be replaced"),
    ],
)
def test_what_cannot_be_replaced_is_refused_before_anything_is(choice: object, message: str) -> None:
    with pytest.raises(gp.InvalidSpecError, match=message):
        gp.plugins.replace(choice)  # type: ignore[arg-type]
    assert active() == {}


@pytest.mark.parametrize("numerics", ["close", 0.0, -1.0, float("nan"), float("inf"), None, True])
def test_an_operation_declares_a_family(numerics: object) -> None:
    with pytest.raises(gp.InvalidSpecError, match="numerics="):
        gp.plugins.Operation("softmax", doubled, numerics)  # type: ignore[arg-type]


def scaled(factor: float, numerics: object) -> gp.plugins.Operation:
    def softmax(x: gp.GPUArray, axis: int = -1, *, out: gp.GPUArray | None = None) -> gp.GPUArray:
        return gp.mul(gp.softmax(x, axis, out=out), factor, out=out)

    return gp.plugins.Operation("softmax", softmax, numerics)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("factor", "numerics", "ok"),
    [
        (1.0, "exact", True),
        (1.0 - 2**-24, "exact", False),
        (1.0 - 2**-24, "rounded", True),
        (1.0 + 2**-20, "rounded", False),
        (1.01, 0.02, True),
        (1.01, 1e-3, False),
        (float("nan"), 1e9, False),
        (-1.0, "exact", False),
    ],
)
def test_check_holds_an_operation_to_its_family(factor: float, numerics: object, ok: bool) -> None:
    (report,) = gp.plugins.check(scaled(factor, numerics))
    assert report.ok is ok and report.calls == 15
    assert ("NOT WITHIN" in str(report)) is not ok


def test_check_tells_a_sign_of_zero_another_shape_and_what_is_refused() -> None:
    def calls(random: np.random.Generator) -> list[tuple[tuple[object, ...], dict[str, object]]]:
        return [((gp.zeros(3),), {})]

    def negative_zero(x: gp.GPUArray) -> gp.GPUArray:
        return gp.neg(gp.sum(x))

    (report,) = gp.plugins.check(gp.plugins.Operation("sum", negative_zero, "exact", calls))
    assert not report.ok and report.worst == 1.0
    (report,) = gp.plugins.check(gp.plugins.Operation("sum", lambda x: gp.zeros(1), "exact", calls))
    assert "float32 (1,) instead of float32 ()" in str(report)
    (report,) = gp.plugins.check(gp.plugins.Operation("sum", lambda x: gp.zeros(())[5], "exact", calls))
    assert not report.ok and report.calls == 0 and len(report.refused) == 1
    with pytest.raises(gp.InvalidSpecError, match="no calls of 'topk' are known"):
        gp.plugins.check(gp.plugins.Operation("topk", doubled, "exact"))
    with gp.plugins.replace({"softmax": DOUBLED}), pytest.raises(gp.InvalidSpecError, match="softmax is replaced now"):
        gp.plugins.check(DOUBLED)


def test_the_command_lists_and_checks(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugins"]) == 0
    assert "pygpukit.ops       exact" in capsys.readouterr().out
    assert cli.main(["plugins", "check", "backend"]) == 0
    assert "softmax by backend of softmax_plugin 1.0 (the same bits): ok, 15 calls" in capsys.readouterr().out
    assert cli.main(["plugins", "check", "fails"]) == 1
    assert "OSError: the device of the plugin is gone" in capsys.readouterr().out
    assert cli.main(["plugins", "check", "nothing"]) == 1
    assert "no such plugin" in capsys.readouterr().err


def test_profiles_name_the_plugin_whose_operation_launched() -> None:
    x = gp.ones((2, 3))

    def fails(x: gp.GPUArray, axis: int = -1, *, out: gp.GPUArray | None = None) -> gp.GPUArray:
        gp.exp(x)
        raise OSError("gone")

    def names(*calls: Callable[[], object]) -> list[str]:
        with gp.profiling.profile() as p:
            for call in calls:
                call()
        return [work.name for work in p.works]

    plain = names(lambda: gp.softmax(x))
    with gp.plugins.replace({"softmax": DOUBLED}):
        found = names(lambda: gp.softmax(x), lambda: gp.exp(x))
        other = threading.Thread(target=lambda: gp.exp(x))
        beside = names(lambda: (other.start(), other.join()))
    assert found[: len(plain)] == [f"{name}, by plugin doubled" for name in plain]
    assert found[len(plain)].endswith(", by plugin doubled") and "plugin" not in found[-1] + beside[0]
    failing = gp.plugins.Operation("softmax", fails, "exact")
    with gp.plugins.replace({"softmax": failing}), pytest.raises(gp.PluginError):
        gp.softmax(x)
    assert names(lambda: gp.softmax(x)) == plain, "nothing is left of a plugin that raised"


def test_a_graph_keeps_the_name_of_the_plugin() -> None:
    kernel = gp.jit('extern "C" __global__ void put(float* x) { x[threadIdx.x] = 2; }')
    x, out, stream = gp.ones(8), gp.zeros(8), gp.Stream()

    def by_kernel(x: gp.GPUArray, axis: int = -1, *, out: gp.GPUArray) -> gp.GPUArray:
        kernel[1, 8](out)
        return out

    operation = gp.plugins.Operation("softmax", by_kernel, 1.0)
    with gp.plugins.replace({"softmax": operation}), stream.capture() as graph:
        gp.softmax(x, out=out)
    with gp.profiling.profile() as p:
        graph.launch()
        gp.synchronize()
    assert (out.to_numpy() == 2).all() and [work.name for work in p.works] == ["put, by plugin by_kernel"]


def _weights() -> dict[str, Any]:
    """Calls of the plan of each family, by the name of the operation that it is of."""
    a, b = gp.ones((4, 5)), gp.ones((5, 3))
    eight = gp.ones((4, 16)).astype("float8_e4m3")
    four = gp.ops.quantize_nvfp4(gp.ones((8, 32)))
    image, filters = gp.ones((1, 2, 6, 6)), gp.ones((3, 2, 3, 3))
    return {
        "matmul": lambda: gp.matmul_plan(a, b),
        "matmul_fp8": lambda: gp.ops.matmul_fp8_plan(eight, eight.T),
        "matmul_fp4": lambda: gp.ops.matmul_fp4_plan(gp.ones((4, 32), "bfloat16"), four),
        "conv1d": lambda: gp.ops.conv_plan(image[0], gp.ones((3, 6, 3))),
        "conv2d": lambda: gp.ops.conv_plan(image, filters),
    }


@pytest.mark.parametrize("name", ["matmul", "matmul_fp8", "matmul_fp4", "conv1d", "conv2d"])
def test_the_plan_of_every_family_names_what_replaces_it(name: str) -> None:
    plan_of = _weights()[name]
    plain = plan_of()
    twice = gp.plugins.Operation(name, lambda *args, **more: None, "exact", name="by-turns")
    with gp.plugins.replace({name: twice}):
        plan = plan_of()
    assert plan.backend == "plugin" and plain.reason in plan.reason
    assert plan.reason.startswith(f"by-turns (the same bits), in the place of {plain.backend}: ")
    assert plan_of() == plain


def test_attention_and_convolutions_are_replaced_and_their_errors_name_the_plugin() -> None:
    q, x, w = gp.ones((1, 2, 3, 4)), gp.ones((1, 2, 6)), gp.ones((3, 2, 3))
    calls = {"sdpa": lambda: gp.sdpa(q, q, q), "sdpa_causal": lambda: gp.sdpa_causal(q, q, q),
             "conv1d": lambda: gp.conv1d(x, w)}  # fmt: skip
    for name, call in calls.items():
        expected = call().to_numpy()

        def halved(*args: Any, name: str = name, **more: Any) -> Any:
            return gp.multiply(getattr(gp, name)(*args, **more), 0.5)

        with gp.plugins.replace({name: gp.plugins.Operation(name, halved, 0.6, name="halves")}):
            np.testing.assert_array_equal(call().to_numpy(), expected / 2)
        np.testing.assert_array_equal(call().to_numpy(), expected)
        broken = gp.plugins.Operation(name, lambda *args, **more: 1 // 0, "exact", name="broken")
        with (
            gp.plugins.replace({name: broken}),
            pytest.raises(gp.PluginError, match=f"'broken', in the place of {name}: ZeroDivisionError"),
        ):
            call()
        np.testing.assert_array_equal(call().to_numpy(), expected)
