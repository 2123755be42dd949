"""Settings of every test run: which backend, a cache folder of its own, and what to say about missing parts."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import turn

# No limit on the time of an example: another process may have the processor just then.
hypothesis.settings.register_profile(
    "patient", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.append(str(REPOSITORY))  # bench/; last, so that an installed pygpukit comes before the checkout's


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all`: what a run otherwise takes a part of."""
    parser.addoption("--all", action="store_true", help="run what has its turn at other commits, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that takes long runs some of its cases, at other commits others; on a GPU, or named, all of them."""
    if config.getoption("--all") or config.getoption("-m") == "gpu" or any("::" in one for one in config.args):
        return
    cases, waiting = Counter[str](), []
    for item in items:
        test = item.nodeid.partition("[")[0]
        marker = item.get_closest_marker("turns")
        if not turn.has_come(test, cases[test], marker.args[0] if marker else turn.commits_a_case(test)):
            waiting.append(item)
        cases[test] += 1
    config.hook.pytest_deselected(items=waiting)
    left_out = set(waiting)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n 2` a process takes whole files: their tests share what they compile and what their fixtures make."""
    if config.getoption("dist") != "load":  # the way was chosen by name
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Before pygpukit is imported: `-m gpu` runs on the device, everything else on the simulation."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background jobs so; the tests of Ctrl-C need Python's own handler, here and in children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    on_gpu = config.getoption("-m") == "gpu"
    os.environ["PYGPUKIT_BACKEND"] = "cuda" if on_gpu else "sim"
    os.environ.setdefault("PYGPUKIT_SIM", "memory=2GiB")  # not what the machine has: the same everywhere
    os.environ.setdefault("PYGPUKIT_NO_CUTLASS", "1")  # plans are the same where its headers were fetched


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's kernel cache. $PYGPUKIT_TEST_CACHE_DIR: one that was filled ahead of time.

    Models are kept where the user keeps them: they are checked whenever they are opened, and large.
    """
    from pygpukit.models.fetch import models_directory

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYGPUKIT_MODELS", str(models_directory()))
        folder = os.environ.get("PYGPUKIT_TEST_CACHE_DIR") or tmp_path_factory.mktemp("cache")
        patch.setenv("PYGPUKIT_CACHE_DIR", str(folder))
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_kept_tables() -> Iterator[None]:
    """What operations and the pool keep on the device for later calls goes with each file: others count every byte, and
    pools of their own need what the device has."""
    yield
    if tables := sys.modules.get("pygpukit.ops.fft.tables"):
        tables.TABLES.clear()
    core = sys.modules.get("pygpukit._core")
    if core is not None and core.native.backend_name() == "sim":
        core.pool_trim(0)


@pytest.fixture(params=[pytest.param("sim"), pytest.param("cuda", marks=pytest.mark.gpu)])
def backend_name(request: pytest.FixtureRequest) -> str:
    """For tests of both backends: the same test runs on the simulation by default and on the device with `-m gpu`."""
    import pygpukit as gp

    name = str(request.param)
    assert gp.backend() == name, gp.backend().reason
    return name


@pytest.fixture(params=["numpy", "kernels", pytest.param("cuda", marks=pytest.mark.gpu)])
def operation_backend(request: pytest.FixtureRequest) -> str:
    """As backend_name, for tests of operations: on the simulation by NumPy, and by their kernels in checked mode."""
    import pygpukit as gp

    name = str(request.param)
    assert gp.backend() == ("cuda" if name == "cuda" else "sim"), gp.backend().reason
    if name == "kernels":
        request.getfixturevalue("quickly_compiled")
        request.getfixturevalue("kernels_on_sim")
    return name


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium, or a skip that says so."""
    found = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
    if found is None:
        pytest.skip("browser tests were left out: there is no Chromium on this machine")
    return found


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2's file, fetched where it is not there yet: kept in $PYGPUKIT_MODELS, or for this run only."""
    import pygpukit as gp

    return Path(gp.models.get("smollm2-135m-instruct", progress=False))


@pytest.fixture(scope="session")
def notebooks() -> Path:
    """The checkout's notebooks."""
    folder = REPOSITORY / "notebooks"
    assert (folder / "00_tour.ipynb").exists(), f"{folder} lacks the tour"
    return folder


@pytest.fixture
def kernels_on_sim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operations run their CUDA kernels on the simulator in checked mode, as they run on a device."""
    from pygpukit.kernels import launcher
    from pygpukit.ops import fusion, host
    from pygpukit.ops.elementwise import pointwise

    monkeypatch.setenv("PYGPUKIT_CHECK", "1")
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)  # operators would go to these kernels in later tests, too
    # Checked kernels hold freed blocks back for as long as there is one: none may outlive the test.
    monkeypatch.setattr(launcher, "_kernels", {})
    monkeypatch.setattr(fusion, "_kernels", {})
    with host.built_in_kernels():
        yield


@pytest.fixture
def quickly_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels for the simulator without optimisation: of short runs most of the time is the compiler's."""
    from pygpukit.jit.compile import simulator

    monkeypatch.setattr(simulator, "_FLAGS", tuple("-O0" if flag == "-O2" else flag for flag in simulator._FLAGS))


def pytest_collection_finish() -> None:
    """What is here now stays to the end: collections, of which hundreds of tests ask for one, need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def facts() -> Iterator[Callable[..., None]]:
    """Gives the current device other facts until the test ends: device_facts.having()."""
    from device_facts import having

    with ExitStack() as stack:
        yield lambda **facts: stack.enter_context(having(**facts))
