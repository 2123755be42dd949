"""Kernels that models are known to launch first: the list holds kernels that there are, and is compiled at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from pygpukit import cli
from pygpukit.core.errors import CompileAllError
from pygpukit.jit.compile import tile
from pygpukit.jit.launch import parallel
from pygpukit.kernels import needed, registry


def test_every_listed_kernel_is_in_the_catalogue() -> None:
    known = {(unit.source, name): unit.spec for unit in registry.catalogue() for name in unit.expressions}
    for model, every in needed.listed().items():
        assert len(every) == 12, f"{model}: six architectures, with and without tile kernels"
        for arch, kernels in every.items():
            assert kernels, f"{model} on {arch}"
            for source, expression, options in kernels:
                spec = known.get((source, expression))
                assert spec is not None, f"{model} on {arch}: {source} has no {expression}; run tools/record_kernels.py"
                assert list(spec.options) == options and not spec.headers
                assert needed.WITHOUT_TILES not in arch or spec.front_end == "simt"


@pytest.mark.parametrize("tiles", [True, False])
def test_a_model_s_kernels_are_compiled_together(monkeypatch: pytest.MonkeyPatch, tiles: bool) -> None:
    monkeypatch.setattr(tile, "missing", lambda: "" if tiles else "no assembler")
    asked: list[Any] = []
    threads: list[str] = []

    def compile_all(units: list[Any], progress: Any) -> None:
        threads.append(threading.current_thread().name)
        asked.extend(units)
        for unit in units:
            progress(unit)

    monkeypatch.setattr(parallel, "compile_all", compile_all)
    assert cli.main(["warmup", "--models", "whisper-tiny.en", "--arch", "sm_80"]) == 0
    wanted = needed.listed()["whisper-tiny.en"]["sm_80" + ("" if tiles else needed.WITHOUT_TILES)]
    assert [(unit.name, unit.arguments()["name_expressions"]) for unit in asked] == [
        (source, [expression]) for source, expression, _ in wanted
    ]
    assert threads == ["pygpukit-needed"]


def test_a_failure_stops_no_load_and_is_told_by_warmup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compile_all(units: list[Any], progress: Any) -> None:
        raise CompileAllError("1 of 9 units failed: words of a compiler", {}, [])

    monkeypatch.setattr(parallel, "compile_all", compile_all)
    monkeypatch.setattr(tile, "missing", lambda: "")
    needed.Coming("kokoro-82m", "sm_90a").wait()
    assert cli.main(["warmup", "--models", "kokoro-82m", "--arch", "sm_90a"]) == 1
    assert "words of a compiler" in capsys.readouterr().err


def test_what_is_not_listed_begins_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coming = needed.Coming(str(tmp_path / "model.gguf"), "sm_90a")
    coming.wait()
    assert coming.total == 0
    assert cli.main(["warmup", "--models", "nothing", "--arch", "sm_90a"]) == 1
    assert "kokoro-82m" in capsys.readouterr().err
