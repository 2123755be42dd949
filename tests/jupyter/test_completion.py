"""Completion in %%cuda cells: what IPython answers, Python's own names included where they must not be."""

from __future__ import annotations

from typing import Any

import pytest
from cell_runner import cuda
from IPython.core.completer import provisionalcompleter

import pygpukit as gp

KERNEL = "__global__ void blur(const float* image, int width) {\n"


def complete(shell: Any, text: str) -> list[str]:
    """Answers with the cursor at the "|" in the text."""
    at = text.index("|")
    with provisionalcompleter():
        return [one.text for one in shell.Completer.completions(text.replace("|", ""), at)]


@pytest.fixture(autouse=True)
def names(shell: Any) -> None:
    shell.user_ns.update(picture=gp.zeros(3), pixels=3, _hidden=gp.zeros(3), imports=1, thread=2)


def test_the_magic_line_completes_our_flags_alone(shell: Any) -> None:
    assert complete(shell, "%%cuda --s|") == ["--sass", "--shared", "--stream", "--sweep"]
    every = complete(shell, "%%cuda |")
    assert {"-i", "-o", "--grid", "--verify", "--no-launch", "-D"} <= set(every)
    assert all(one.startswith("-") for one in every)
    assert complete(shell, "%%cuda --grid 1 --ben|\n__global__") == ["--bench"]
    assert complete(shell, "%%cuda imp|") == []
    assert complete(shell, "\n\n%%cuda --be|") == ["--bench"]


@pytest.mark.parametrize("before", ["-i ", "-o ", "-i x,", "-i image=", "-o 'x,", "-ix,", "--grid 4 -o "])
def test_after_i_and_o_come_device_arrays(shell: Any, before: str) -> None:
    assert complete(shell, f"%%cuda {before}|") == ["picture"]
    assert complete(shell, f"%%cuda {before}pi|") == ["picture"]
    assert complete(shell, f"%%cuda {before}q|") == []


def test_values_that_are_known_are_completed(shell: Any) -> None:
    cuda(shell, "--name tools.cuh", "__device__ float sq(float x) { return x * x; }")
    assert complete(shell, f"%%cuda --kernel |\n{KERNEL}}}") == ["blur"]
    assert complete(shell, "%%cuda --with |") == ["tools.cuh"]
    assert "sm_90a" in complete(shell, "%%cuda --arch sm_|")
    assert complete(shell, "%%cuda --check |") == ["memory"]


def test_the_body_completes_cuda_and_never_python(shell: Any) -> None:
    assert complete(shell, f"%%cuda\n{KERNEL} thread|") == ["threadIdx"]
    assert complete(shell, f"%%cuda\n{KERNEL} threadIdx.|") == ["x", "y", "z"]
    assert complete(shell, f"%%cuda\n{KERNEL} __syncw|") == ["__syncwarp"]
    assert complete(shell, f"%%cuda\n{KERNEL} wid|") == ["width"], "a name of this cell"
    for start in ("imp", "pix", "lamb", "isinst", "qqq", "gp.", "%ti", "np.ar", ""):
        answers = complete(shell, f"%%cuda\n{KERNEL} {start}|")
        assert not {"import", "imports", "pixels", "lambda", "isinstance", "%time", "%timeit"} & set(answers)
        assert bool(answers) == (start == "")


def test_names_of_earlier_cells_are_known(shell: Any) -> None:
    cuda(
        shell,
        "",
        "#define RADIUS 3\nstruct Pixel { float r; };\nnamespace image { __constant__ float weights[9]; }\n"
        "__device__ float luminance(Pixel p) { float inner = p.r; return inner; }\n__global__ void grey(Pixel* p) {}",
    )
    for start, name in (("RAD", "RADIUS"), ("Pix", "Pixel"), ("wei", "weights"), ("lum", "luminance"), ("gre", "grey")):
        assert complete(shell, f"%%cuda\n__global__ void k() {{ {start}|") == [name]
    assert complete(shell, "%%cuda\n__global__ void k() { inn|") == [], "a local variable stays local"


def test_other_cells_complete_as_ever(shell: Any) -> None:
    assert "pixels" in complete(shell, "pix|")
    assert "%%cuda" in complete(shell, "%%cu|")
    assert "import" in complete(shell, "impo|")
    assert "pixels" in complete(shell, "x = '%%cuda '\npix|")


def test_unloading_takes_the_matcher_out(shell: Any) -> None:
    assert len(shell.Completer.custom_matchers) == 1
    shell.run_line_magic("reload_ext", "pygpukit")
    assert len(shell.Completer.custom_matchers) == 1
    shell.run_line_magic("unload_ext", "pygpukit")
    assert shell.Completer.custom_matchers == []
    shell.run_line_magic("load_ext", "pygpukit")


@pytest.mark.parametrize("use_jedi", [True, False])
def test_the_package_completes_public_names_alone(shell: Any, use_jedi: bool) -> None:
    shell.run_cell("import pygpukit as gp")
    shell.Completer.use_jedi = use_jedi
    with provisionalcompleter():
        names = {one.text.lstrip(".") for one in shell.Completer.completions("gp.", 3)}
    assert {"array", "zeros", "GPUArray"} <= names <= set(dir(gp))
