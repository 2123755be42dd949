"""The simulator's headers in the cache folder, and their precompiled form: used when intact, never needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import sim_headers, simulator

SOURCE = "__global__ void k(int *o) {{ *o = {number}; }}"


@pytest.fixture
def gcc() -> None:
    if "g++" not in simulator.compiler_identity():
        pytest.skip("only g++'s headers are precompiled")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, as a process that has compiled nothing sees it."""
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sim_headers, "_asked", {})
    monkeypatch.setattr(sim_headers, "_ready", {})
    return tmp_path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The compiler's command lines, as they are run."""
    run: Callable[[list[str]], tuple[int, str, str]] = simulator._run
    seen: list[list[str]] = []

    def note(command: list[str]) -> tuple[int, str, str]:
        if "--version" not in command:
            seen.append(command)
        return run(command)

    monkeypatch.setattr(simulator, "_run", note)
    return seen


def compile_one(number: int, **options: object) -> simulator.SimImage:
    return simulator.compile(SOURCE.format(number=number), **options)  # type: ignore[arg-type]


def first_header(command: list[str]) -> Path:
    return Path(command[command.index("-include") + 1])


def precompiled(cache: Path) -> list[Path]:
    return list(cache.glob(f"simulator/*/precompiled/*/{sim_headers.PRELUDE}.gch"))


def wait_until_made(cache: Path) -> Path:
    join_makers()
    (found,) = precompiled(cache)
    return found


def join_makers() -> None:
    """Until nobody makes a precompiled header: when one is there, its maker has still to note and to tidy up."""
    for thread in threading.enumerate():
        if thread.name == "pygpukit-precompile":
            thread.join()


@pytest.mark.usefixtures("gcc")
def test_the_second_compile_has_the_headers_precompiled(cache: Path, commands: list[list[str]]) -> None:
    compile_one(1)
    assert not precompiled(cache)
    compile_one(2)
    made = wait_until_made(cache)
    sim_headers._ready.clear()  # as another process begins
    compile_one(3)
    assert first_header(commands[-1]) == made.with_suffix("")
    assert first_header(commands[0]).parent == sim_headers.folder()


@pytest.mark.usefixtures("gcc")
def test_images_are_the_same_with_and_without_it(cache: Path) -> None:
    plain = compile_one(1)
    compile_one(2)
    wait_until_made(cache)
    sim_headers._ready.clear()
    read: list[str] = []
    assert compile_one(1, read=read).kernels == plain.kernels
    assert str(sim_headers.folder() / "pk_sim_block.h") in read
    assert not any(path.endswith(".gch") for path in read)


@pytest.mark.usefixtures("gcc")
def test_a_damaged_one_is_not_used(cache: Path, commands: list[list[str]]) -> None:
    compile_one(1)
    compile_one(2)
    made = wait_until_made(cache)
    content = bytearray(made.read_bytes())
    content[len(content) // 2] ^= 1
    made.write_bytes(content)
    sim_headers._ready.clear()
    compile_one(3)
    assert first_header(commands[-1]).parent == sim_headers.folder()
    assert not made.exists()


@pytest.mark.usefixtures("gcc")
def test_macros_of_the_command_line_concern_the_source_alone(cache: Path, commands: list[list[str]]) -> None:
    compile_one(1)
    compile_one(2)
    made = wait_until_made(cache)
    sim_headers._ready.clear()
    with pytest.raises(CompileError, match="the kernel's own"):
        simulator.compile('static_assert(OWN != 1, "the kernel\'s own");', defines=["OWN=1"])
    simulator.compile(SOURCE.format(number=3), defines=["float3=double", "x=y z"])  # names of the header
    assert first_header(commands[-1]).parent == made.parent


@pytest.mark.usefixtures("gcc")
def test_one_that_was_taken_away_is_not_missed(cache: Path, commands: list[list[str]]) -> None:
    compile_one(1)
    compile_one(2)
    made = wait_until_made(cache)
    sim_headers._ready.clear()
    compile_one(3)
    assert first_header(commands[-1]).parent == made.parent
    shutil.rmtree(made.parent)
    compile_one(4)
    assert first_header(commands[-1]).parent == sim_headers.folder()


@pytest.mark.usefixtures("gcc")
def test_many_in_use_stay_and_old_ones_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim_headers, "_KEPT_PRECOMPILED", 1)
    compile_one(1)
    compile_one(2)
    first = wait_until_made(cache).parent
    for _ in range(2):
        compile_one(3, options=["--fmad=false"])
    join_makers()
    assert len(list(first.parent.iterdir())) == 2 and first.exists()
    os.utime(first, (0, 0))
    sim_headers._keep_latest(first.parent)
    assert not first.exists() and len(list(first.parent.iterdir())) == 1


def test_an_emptied_cache_folder_is_filled_again(cache: Path) -> None:
    compile_one(1)
    shutil.rmtree(cache / "simulator")
    assert compile_one(2).image


def test_a_folder_that_cannot_be_used_costs_nothing_but_time(cache: Path) -> None:
    (cache / "simulator").write_text("a file where the folder should be")
    assert compile_one(1).image
    assert cache not in sim_headers.folder().parents


def test_headers_of_a_folder_that_others_may_write_to_are_not_used(cache: Path) -> None:
    (cache / "simulator").mkdir(mode=0o777)
    (cache / "simulator").chmod(0o777)
    assert compile_one(1).image
    assert cache not in sim_headers.folder().parents


@pytest.mark.usefixtures("gcc")
def test_processes_that_make_it_at_once_do_not_disturb_each_other(cache: Path) -> None:
    program = (
        "import sys; from pygpukit.jit.compile import simulator\n"
        "for i in range(4): simulator.compile('__global__ void k(int *o) { *o = %d; }' % (i + int(sys.argv[1])))"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(10 * n)]) for n in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    sim_headers._ready.clear()
    assert compile_one(99).image


DAMAGES: dict[str, Callable[[Path], object]] = {
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "changed": lambda file: file.write_text(file.read_text().replace("unsigned", "signed")),
    "empty": lambda file: file.write_text(""),
    "gone": lambda file: file.unlink(),
    "pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "folder": lambda file: (file.unlink(), file.mkdir(), (file / "x").write_text("")),
    "link": lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("name", [sim_headers.PRELUDE, "pk_sim_block.h", "cooperative_groups/reduce.h"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_headers_are_written_again(cache: Path, damage: str, name: str) -> None:
    headers = sim_headers.folder()
    whole = {file: file.read_bytes() for file in headers.rglob("*") if file.is_file()}
    (headers / "precompiled").mkdir()
    DAMAGES[damage](headers / name)
    (headers / "of_nobody.h").write_text("#error this is not ours")
    assert sim_headers.folder() == headers
    assert {file: file.read_bytes() for file in headers.rglob("*") if file.is_file()} == whole
    assert not (headers / "precompiled").exists(), "it may have been made of damaged ones"


@pytest.mark.parametrize("damage", ["half", "changed", "pipe"])
def test_kernels_compile_rightly_over_damaged_headers(cache: Path, damage: str) -> None:
    for name in (sim_headers.PRELUDE, "pk_sim_block.h"):
        DAMAGES[damage](sim_headers.folder() / name)
    out = gp.zeros(1, dtype="int32")
    gp.jit("__global__ void k(int *o) { *o = (int)(__brev(1u) >> 1) + __clz(1); }", "k")(out)
    assert out.to_numpy()[0] == (1 << 30) + 31


@pytest.mark.usefixtures("gcc")
def test_a_precompiled_header_that_changes_in_use_is_not_used(cache: Path, commands: list[list[str]]) -> None:
    compile_one(1)
    compile_one(2)
    made = wait_until_made(cache)
    compile_one(3)
    assert first_header(commands[-1]).parent == made.parent
    made.unlink()
    os.mkfifo(made)
    compile_one(4)
    assert first_header(commands[-1]).parent == sim_headers.folder()


def test_the_headers_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygpukit.jit.compile import request

    before = request.simulator_identity()
    monkeypatch.setattr(sim_headers, "digest", lambda: "another")
    assert request.simulator_identity.__wrapped__() != before


def test_what_translates_sources_is_in_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pygpukit.jit.compile import request, sim_translation

    before = request.simulator_identity()
    copied = Path(shutil.copytree(sim_translation._JIT, tmp_path / "jit"))
    assert sim_translation.of(copied) == sim_translation.digest()
    for part in ("ptx/floats.py", "compile/sim_source.py", "source/lexer.py"):
        (copied / part).write_text((copied / part).read_text() + "# another\n")
        changed = sim_translation.of(copied)
        assert changed != sim_translation.digest(), part
        monkeypatch.setattr(sim_translation, "digest", lambda changed=changed: changed)
        assert request.simulator_identity.__wrapped__() != before
        shutil.copy(sim_translation._JIT / part, copied / part)
        monkeypatch.undo()
