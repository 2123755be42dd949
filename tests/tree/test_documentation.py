"""What `gp?`, `gp.<tab>` and `gp.name?` show: where to start, what most need, sections with examples that run."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.sections import HEADS, add_to, has_sections
from pygpukit.ops.sections.examples import EXAMPLES
from pygpukit.ops.sections.words import BY_FUNCTION, WORDS

FOREIGN = {"Any", "Callable", "Iterator", "Path", "Sequence", "TYPE_CHECKING", "annotations", "cast", "import_module"}


def shown() -> dict[str, FunctionType]:
    """The functions that gp.<tab> shows."""
    found = {name: getattr(gp, name) for name in dir(gp)}
    return {name: value for name, value in found.items() if isinstance(value, FunctionType)}


def test_every_function_shown_has_all_sections() -> None:
    without = [name for name, function in shown().items() if not has_sections(function.__doc__ or "")]
    assert len(without) == 0, f"{len(without)} of {len(shown())} lack sections: {without}"


def test_every_parameter_says_what_it_is() -> None:
    silent = [
        (name, parameter)
        for name, function in shown().items()
        for parameter in inspect.signature(function).parameters
        if parameter not in WORDS and (name, parameter) not in BY_FUNCTION
    ]
    assert silent == []
    parameters = {one for name in dir(gp) if name in shown() for one in inspect.signature(shown()[name]).parameters}
    everywhere = {
        one
        for name in gp.__all__
        if isinstance(getattr(gp, name), FunctionType)
        for one in inspect.signature(getattr(gp, name)).parameters
    }
    assert WORDS.keys() - everywhere == set() and parameters, "no word without a parameter"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_give_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "_", None, raising=False)  # doctest sets it, and IPython leaves its own out then
    tests = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"gp": gp, "np": np}, name, None, 0)
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(tests, out=told.append).failed == 0, "".join(told)


def test_sections_are_added_once_and_never_to_a_docstring_that_has_them() -> None:
    def made(a: int = 3) -> int:
        """What it does. Raises ValueError for less than nothing."""
        return a

    add_to(made, "made")
    once = made.__doc__ or ""
    add_to(made, "made")
    assert made.__doc__ == once and once.startswith("What it does.")
    assert "a : int, default 3" in once and "ValueError\n" in once
    assert gp.ops.matmul is gp.matmul and (gp.matmul.__doc__ or "").count("Parameters\n---") == 1
    assert all((gp.matmul.__doc__ or "").count(f"\n{head}\n") == 1 for head in HEADS)


def test_every_error_says_what_it_is_of() -> None:
    assert [name for name, function in shown().items() if "As said above" in (function.__doc__ or "")] == []


def test_the_package_begins_with_where_to_start() -> None:
    assert (gp.__doc__ or "").startswith("Where to start: ")
    for word in ("gp.array", "gp.jit", "gp.llm", "gp.scheduler", "gp.dashboard", "gp.ops"):
        assert word in (gp.__doc__ or "")


def test_completion_has_what_most_need_and_the_rest_is_reachable() -> None:
    names = set(dir(gp))
    assert len(names) < 340 < len(gp.__all__)
    assert names >= {"array", "zeros", "matmul", "sin", "sum", "jit", "scheduler", "llm", "ops", "GPUError", "float32"}
    apart = {"sdpa", "conv2d", "rope_inplace", "matmul_fp4", "lstm_forward", "get_nvrtc_path"}
    assert not names & apart and all(hasattr(gp, name) for name in apart)
    assert apart - {"get_nvrtc_path"} <= set(dir(gp.ops))
    with pytest.raises(AttributeError, match="did you mean sdpa"):
        _ = gp.sdpaa


def test_modules_show_nothing_that_they_import() -> None:
    for module in submodules():
        strange = {name for name in dir(module) if not name.startswith("_") and is_foreign(module, name)}
        assert strange == set(), module.__name__


def submodules() -> list[ModuleType]:
    return [importlib.import_module(f"pygpukit.{name}") for name in gp._SUBMODULES]


def is_foreign(module: ModuleType, name: str) -> bool:
    value: Any = vars(module).get(name)
    return name in FOREIGN or (isinstance(value, ModuleType) and not value.__name__.startswith("pygpukit"))
