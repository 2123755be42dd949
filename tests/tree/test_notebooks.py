"""What is stored in the notebooks: every cell ran, in order, fails only where it says so; every run is the same."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import nbformat
import pytest

import pygpukit as gp

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PROJECT = (REPOSITORY / "pyproject.toml").read_text()
MAX_BYTES = 1_000_000
UNSTABLE = {
    "an address": r"\b0x[0-9a-f]{6,}\b",
    "an absolute path": r"(?<![\w.])/(home|root|tmp|usr|work|Users)/",
    "a date": r"\b20\d\d-\d\d-\d\d\b",
}


NOTEBOOKS = sorted(path.name for path in (REPOSITORY / "notebooks").glob("*.ipynb"))
FAILS = "raises-exception"  # nbval's tag for a cell that shows an error on purpose


@pytest.fixture(params=NOTEBOOKS)
def path(request: pytest.FixtureRequest, notebooks: Path) -> Path:
    return notebooks / str(request.param)


def test_the_notebooks_are_there() -> None:
    known = (
        "00_tour",
        "01_cuda_cells",
        "02_debugging_kernels",
        "03_arrays",
        "04_matmul",
        "05_scheduler",
        "06_dashboards",
        "07_llm_chat",
        "09_attention",
        "10_audio_dsp",
        "11_live_spectrogram",
        "08_two_models_one_gpu",
        "12_transcribe",
        "13_speak",
        "14_voice_assistant",
        "15_many_clients",
        "16_few_bits",
        "17_experts",
        "18_guessing",
        "19_two_gpus",
        "20_pathologies",
        "21_programs",
        "22_cute",
    )
    assert {f"{name}.ipynb" for name in known} <= set(NOTEBOOKS)


# What needs more than the extra `lab`, by how it is written in a cell.
NEEDS_MORE = re.compile(r"gp\.(llm|asr|tts|pipeline|models|ops\.audio)\b")


def test_what_a_notebook_imports_comes_with_readmes_first_command(path: Path) -> None:
    command = next(line for line in (REPOSITORY / "README.md").read_text().splitlines() if line.startswith("python -m"))
    extras = re.fullmatch(r'python -m pip install -e "\.\[(\w+)\]" && pygpukit lab', command)
    assert extras, command
    book = nbformat.read(path, as_version=4)
    sources = [cell.source for cell in book.cells if cell.cell_type == "code"]
    found = {name for source in sources for name in imported(source)} - sys.stdlib_module_names - {"pygpukit"}
    allowed = brought(extras[1])
    providers = packages_distributions()
    strange = {name for name in found if not allowed & {canonical(one) for one in providers.get(name, ())}}
    assert not strange, f"{path.name} imports {strange}, which the extra {extras[1]} does not bring"
    if any(NEEDS_MORE.search(source) for source in sources):
        assert '`python -m pip install -e ".[all]"`' in book.cells[0].source, f"{path.name} does not say what it needs"


def imported(source: str) -> set[str]:
    """The modules that a cell's Python imports, wherever it does; magics left out."""
    if source.startswith("%%"):
        return set()
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("%")]
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def brought(extra: str) -> set[str]:
    """The distributions that an extra brings, with what they need themselves."""
    left = [re.split(r"[^\w.-]", one)[0] for one in ("numpy", *requirements_of_the_project(extra))]
    found: set[str] = set()
    while left:
        name = canonical(left.pop())
        if name not in found:
            found.add(name)
            with contextlib.suppress(PackageNotFoundError):
                needed = [one for one in requires(name) or () if "extra ==" not in one]
                left += [re.split(r"[^\w.-]", one)[0] for one in needed]
    return found


def requirements_of_the_project(extra: str) -> list[str]:
    """What pyproject lists for an extra, extras of its own followed."""
    lists = re.search(rf"^{extra} = \[(.*)\](?:  #.*)?$", PROJECT, re.MULTILINE)
    assert lists, f"pyproject.toml has no extra {extra}"
    found = []
    for one in re.findall(r'"([^"]+)"', lists[1]):
        own = re.fullmatch(r"pygpukit\[(.*)\]", one)
        found += [two for name in own[1].split(",") for two in requirements_of_the_project(name)] if own else [one]
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", ["00_tour", "01_cuda_cells", "03_arrays", "05_scheduler", "06_dashboards"])
def test_a_dashboard_is_shown_and_its_static_form_kept(name: str, notebooks: Path) -> None:
    book = nbformat.read(notebooks / f"{name}.ipynb", as_version=4)
    shown = [output.data for cell in book.cells for output in cell.get("outputs", []) if "data" in output]
    views = [data["text/html"] for data in shown if data.get("text/plain", "").endswith("Widget()")]
    assert views and all(view.startswith("<div") and "<b>GPU " in view for view in views)


def test_cells_ran_in_order_with_no_other_errors(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        errors = [output for output in cell.outputs if output.output_type == "error"]
        assert bool(errors) == (FAILS in cell.metadata.get("tags", [])), cell.id
    assert not [cell for cell in code if "nbval-ignore-output" in cell.metadata.get("tags", [])]
    assert path.stat().st_size < MAX_BYTES


def test_outputs_are_stable(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            texts = [output.get("text", ""), *map(str, output.get("data", {}).values())]
            texts += [output.get("evalue", ""), *output.get("traceback", [])]
            for text in texts:
                if text.isascii() and len(text) < 50_000:  # pictures are longer
                    for what, pattern in UNSTABLE.items():
                        assert not re.search(pattern, text), f"{cell.id} stores {what}: {text[:200]}"


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", ["00_tour", "05_scheduler"])
def test_a_changed_output_is_found(name: str, notebooks: Path, tmp_path: Path) -> None:
    """nbval on the first cells, once as stored and once with one digit changed: the comparison can fail."""
    path = notebooks / f"{name}.ipynb"
    book = nbformat.read(path, as_version=4)
    first = next(at for at, cell in enumerate(book.cells) if _stored_result(cell) is not None)
    book.cells = book.cells[: first + 1]
    result = _stored_result(book.cells[first])
    assert result is not None
    if (path.parent / "data").is_dir():
        (tmp_path / "data").symlink_to(path.parent / "data")
    for model in ("smollm2-135m-instruct", "whisper-tiny.en"):
        if model in nbformat.writes(book):  # a first fetch has a progress bar more
            gp.models.get(model, progress=False)
    codes = []
    for form in ("stored", "changed"):
        nbformat.write(book, tmp_path / f"{form}.ipynb")
        command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-p", "no:cacheprovider"]
        command += ["--nbval-sanitize-with", str(REPOSITORY / "tools" / "nbval_sanitize.cfg")]
        folder = {"PYTEST_ADDOPTS": "", **os.environ}
        done = subprocess.run([*command, str(tmp_path / f"{form}.ipynb")], capture_output=True, env=folder, check=False)
        codes.append(done.returncode)
        result["text/plain"] = re.sub(
            r"\d", lambda digit: str((int(digit.group()) + 1) % 10), result["text/plain"], count=1
        )
    assert codes == [0, 1]


def _stored_result(cell: Any) -> Any:
    """The data of a cell's result that has a digit in its text, None when there is none."""
    found = [o.data for o in cell.get("outputs", []) if o.output_type == "execute_result"]
    return next((data for data in found if re.search(r"\d", data["text/plain"])), None)


def test_errors_are_those_of_the_cells(notebooks: Path) -> None:
    """Each of the four bugs is reported at a line of its own cell, in at most fifteen lines."""
    cells = nbformat.read(notebooks / "02_debugging_kernels.ipynb", as_version=4).cells
    kernels = ""
    kinds = []
    for cell in cells:
        if cell.cell_type == "code" and cell.source.startswith("%%cuda"):
            kernels = cell.source
        for error in [output for output in cell.get("outputs", []) if output.output_type == "error"]:
            place = re.match(r"cell:(\d+): ([a-z -]+): ", error.traceback[0])
            assert error.ename == "KernelCheckError" and place, error.traceback
            line = kernels.splitlines()[int(place[1]) - 1]
            assert f"  -> {int(place[1]):3} | {line}" in error.traceback
            assert len(error.traceback) <= 15
            kinds.append(place[2])
    assert kinds == ["out of bounds", "race", "race", "uninitialised"]
