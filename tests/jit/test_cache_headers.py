"""Units that read files of their own: found again while the files are the same, anywhere; compiled when one is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit.jit import compile_source, explain
from pygpukit.jit.cache import manifest
from pygpukit.jit.cache import store as cache
from pygpukit.jit.cache.image import Image

SOURCE = """#include <a.h>
#include "q.h"
__global__ void k(int* x) { x[0] = f() + Q + D; }
"""
TREE = {
    "inc/a.h": '#include "sub/b.h"\n#define PLACE "sub/d.h"\n#include PLACE\n#if __has_include("n.h")\n#endif\n',
    "inc/sub/b.h": '#include "c.h"\n__device__ int f() { return C; }\n',
    "inc/sub/c.h": "#define C 1\n",
    "inc/sub/d.h": "#define D 1\n",
    "run/q.h": "#define Q 2\n",
    "first/unused.h": "",
}
CHILD = """
import sys
from pygpukit.jit import compile_source
image = compile_source(sys.argv[1], options=["-I../first", "-I../inc"], arch=sys.argv[2])
print(image.origin, image.reason)
"""


@pytest.fixture(params=["sim", "sm_90a"])
def arch(request: pytest.FixtureRequest) -> str:
    if request.param != "sim" and gp.get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed (extra cuda13)")
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder; the current folder is its `run`. The cache is empty."""
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_cache", None)
    project = tmp_path / "project"
    for name, text in TREE.items():
        write(project / name, text)
    monkeypatch.chdir(project / "run")
    return project


def write(path: Path, text: str) -> None:
    """As an editor would have a moment ago: a file that is newer than the compile's start is not trusted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    while manifest.file_clock_ns() <= path.stat().st_ctime_ns:
        time.sleep(0.001)


def build(arch: str, source: str = SOURCE, *options: str) -> Image:
    return compile_source(source, options=[*options, "-I../first", "-I../inc"], arch=arch)


def test_the_clock_of_files_is_between_what_was_written_before_and_after(tmp_path: Path) -> None:
    """Also of files that were looked at, which some systems stamp by a finer clock."""
    path = tmp_path / "header.h"
    for _ in range(2000):
        path.write_text("x")
        before = path.stat().st_ctime_ns
        now = manifest.file_clock_ns()
        path.write_text("y")
        assert before <= now <= path.stat().st_ctime_ns


def test_unchanged_headers_hit(root: Path, arch: str) -> None:
    first, second = build(arch), build(arch)
    assert (first.origin, second.origin) == ("compiled", "memory")
    assert first.image == second.image and first.key == second.key
    assert first.parts["files"].startswith("5 read")


@pytest.mark.parametrize("header", ["run/q.h", "inc/sub/c.h", "inc/sub/d.h"])
def test_a_changed_header_misses_and_is_named(root: Path, arch: str, header: str) -> None:
    before = build(arch)
    text = (root / header).read_text()
    write(root / header, text + "// changed\n")
    changed = build(arch)
    assert changed.origin == "compiled" and changed.key != before.key
    assert f"{Path(*Path(header).parts[1:])}" in changed.reason and changed.reason.endswith("changed")
    assert changed.reason in explain(changed)
    assert build(arch).origin == "memory"
    write(root / header, text)
    again = build(arch)
    assert (again.origin, again.key) == ("memory", before.key), "the earlier state is kept, too"


# What a new file comes before: <a.h>; "c.h" in inc/sub; "q.h" of the source has no earlier place; __has_include("n.h");
# and the path that a macro holds.
@pytest.mark.parametrize("shadow", ["first/a.h", "inc/n.h", "run/n.h", "run/sub/b.h", "first/sub/d.h"])
def test_a_file_that_would_be_found_earlier_misses(root: Path, arch: str, shadow: str) -> None:
    before = build(arch)
    write(root / shadow, '#include "../inc/a.h"\n' if shadow == "first/a.h" else "#define C 5\n#define D 5\n")
    appeared = build(arch)
    assert appeared.origin == "compiled" and "appeared" in appeared.reason
    (root / shadow).unlink()
    assert build(arch).key == before.key
    write(root / "inc/unrelated.h", "")
    assert build(arch).origin == "memory"


def test_a_file_that_is_gone_misses(root: Path, arch: str) -> None:
    write(root / "inc/n.h", "")
    build(arch)
    (root / "inc/n.h").unlink()
    assert build(arch).reason == "n.h (-I folder 2) is gone"


def test_another_process_under_another_path_hits(root: Path, arch: str, tmp_path: Path) -> None:
    build(arch)
    elsewhere = tmp_path / "moved" / "deeper"
    shutil.copytree(root, elsewhere)

    def child() -> str:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, SOURCE, arch],
            cwd=elsewhere / "run",
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert child() == "disk"
    write(elsewhere / "inc/sub/c.h", "#define C 7\n")
    assert child() == "compiled sub/c.h (-I folder 2) changed"


@pytest.mark.parametrize("uses", ["const char* name() { return __FILE__; }", "void g() { assert(1); }"])
def test_a_header_that_tells_its_path_holds_in_its_own_folder_only(
    root: Path, arch: str, uses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        root / "inc/sub/d.h",
        f"#ifdef PYGPUKIT_SIM\n#include <assert.h>\n#endif\n#define D 1\n__device__ {uses}\n",
    )
    assert [build(arch).origin for _ in range(2)] == ["compiled", "memory"]
    elsewhere = tmp_path / "moved"
    shutil.copytree(root, elsewhere)
    monkeypatch.chdir(elsewhere / "run")
    moved = build(arch)
    assert moved.origin == "compiled" and "another folder" in moved.reason


def test_pre_includes_and_absolute_paths(root: Path, arch: str) -> None:
    write(root / "run/pre.h", "#define PRE 1\n")
    write(root / "run/other.h", "#define PRE 2\n")
    write(root / "absolute.h", "#define ABSOLUTE 1\n")
    source = f'#include "{root}/absolute.h"\n__global__ void k(int* x) {{ x[0] = PRE + ABSOLUTE; }}'
    options = [f"--pre-include={name}" for name in ("pre.h", "other.h", f"{root}/run/pre.h", f"{root}/run/other.h")]
    for option in options:
        assert [build(arch, source, option).origin for _ in range(2)] == ["compiled", "memory"]
    for header, name in ((root / "run/pre.h", "pre.h changed"), (root / "absolute.h", f"{root}/absolute.h changed")):
        write(header, header.read_text() + "// changed")
        assert build(arch, source, options[2]).reason == name
        assert build(arch, source, options[0]).reason == name


def test_an_absolute_pre_include_may_move(root: Path, arch: str) -> None:
    source = "__global__ void k(int* x) { x[0] = PRE; }"
    origins = []
    for folder, text in (("a", "#define PRE 1\n"), ("b", "#define PRE 1\n"), ("c", "#define PRE 3\n")):
        write(root / folder / "pre.h", text)
        origins.append(compile_source(source, options=[f"--pre-include={root / folder / 'pre.h'}"], arch=arch).origin)
    assert origins == ["compiled", "memory", "compiled"]


def test_a_header_of_the_current_folder_needs_no_option(root: Path, arch: str) -> None:
    source = '#include "q.h"\n__global__ void k(int* x) { x[0] = Q; }'
    assert [compile_source(source, arch=arch).origin for _ in range(2)] == ["compiled", "memory"]
    write(root / "run/q.h", "#define Q 9\n")
    assert compile_source(source, arch=arch).reason == "q.h changed"


def test_a_header_written_during_the_compile_is_not_cached(
    root: Path, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn: Callable[..., manifest.Files] = manifest.learn

    def edited(*args: object) -> manifest.Files:
        write(root / "inc/sub/c.h", "#define C 3\n")
        return learn(*args)

    monkeypatch.setattr(manifest, "learn", edited)
    image = build(arch)
    assert (image.origin, image.reason) == ("uncached", "a header was written while the unit compiled")
    assert "compiled and not cached; a header was written" in explain(image)
    monkeypatch.setattr(manifest, "learn", learn)
    assert build(arch).origin == "compiled"


def test_what_nothing_tells_is_not_cached(root: Path, arch: str) -> None:
    asked = '#define A "q.h"\n#if __has_include(A)\n#endif\n' + SOURCE
    for _ in range(2):
        image = build(arch, asked)
        assert image.origin == "uncached" and "a macro holds" in image.reason


def test_folders_of_the_environment_are_not_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPATH", str(root / "run"))
    with pytest.raises(gp.CompileError, match=r"q\.h"):
        compile_source("#include <q.h>\n__global__ void k(int* x) { x[0] = Q; }", arch="sim")


def test_names_with_spaces_and_other_letters(root: Path, arch: str) -> None:
    write(root / "run/my header $1 #2.h", "#define Q 1\n")
    source = '#include "my header $1 #2.h"\n__global__ void k(int* x) { x[0] = Q; }'
    assert [compile_source(source, arch=arch).origin for _ in range(2)] == ["compiled", "memory"]
