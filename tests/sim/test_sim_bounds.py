"""Sources that a compiler would choke on: each is answered soon, with one readable line, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process_help import alive
from scheduler_help import wait_until

from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import bounded, simulator
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.refused import MAX_BRACKETS, refuse_nesting
from pygpukit.jit.launch.unit import Unit

KERNEL = "__global__ void k(int *o) { *o = 1; }\n"
DOUBLING = "#define A0 1+\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(30))
MEGABYTE = 1 << 20


def only_line(error: CompileError) -> str:
    (line,) = error.log.splitlines()
    assert len(line) < 200
    return line


def doubling(number: int) -> str:
    return f"{DOUBLING}__global__ void k(int *o) {{ *o = A30 {number}; }}\n"


def test_the_time_of_a_compile_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_TIMEOUT_S", "1")
    with pytest.raises(CompileError) as caught:
        simulator.compile(doubling(1), name="slow.cu")
    assert only_line(caught.value).startswith("slow.cu:1: error: compiling took more than 1 s")


def test_the_memory_of_a_compile_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_MEMORY", "150MiB")
    with pytest.raises(CompileError) as caught:
        simulator.compile(doubling(2), name="large.cu")
    assert "needed more than 150 MiB of memory" in only_line(caught.value)


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_limits_that_say_nothing_are_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_TIMEOUT_S", value)
    with pytest.raises(ValueError, match="PYGPUKIT_SIM_COMPILE_TIMEOUT_S"):
        bounded.limits()


def test_the_output_of_a_compiler_is_bounded() -> None:
    outcome = bounded.run(["cat", "/dev/zero"], dict(os.environ), bounded.Limits(seconds=60))
    assert outcome.exceeded == "the compiler wrote more than 64 MiB of messages" and len(outcome.output) == MEGABYTE
    for status in (0, 3):
        command = ["sh", "-c", f"echo out; echo told >&2; exit {status}"]
        assert bounded.run(command, dict(os.environ), bounded.Limits()) == (status, "out\n", "told\n", "")


def processes_of(command: str) -> list[int]:
    """Those whose command line holds the text."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if command in line and alive(int(folder.name)):
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_compiler_ends_with_python(number: int, tmp_path: Path) -> None:
    mark = f"-I{tmp_path}"  # macros are told in a file
    program = f"from pygpukit.jit.compile import simulator\nsimulator.compile({doubling(3)!r}, options=[{mark!r}])"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            # The shell, the compiler's driver and the compiler itself.
            wait_until(lambda: len(set(processes_of(mark)) - {process.pid}) >= 3)
        finally:
            process.send_signal(number)
    wait_until(lambda: not processes_of(mark))


@pytest.mark.parametrize("kind", ["quoted", "angled", "inner", "option", "device"])
def test_includes_that_are_no_regular_files_are_refused(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    (tmp_path / "inner.h").write_text('\n#include "pipe.h"\n')
    line, options = {
        "quoted": (f'#include "{tmp_path}/pipe.h"', []),
        "angled": ("#include <pipe.h>", [f"-I{tmp_path}"]),
        "inner": ("#include <inner.h>", [f"-I{tmp_path}"]),
        "option": ("", ["-include", f"{tmp_path}/pipe.h"]),
        "device": ('#include "/dev/zero"', []),
    }[kind]
    with pytest.raises(CompileError, match="is no regular file") as caught:
        compile_source(f"\n\n{line}\n{KERNEL}", arch="sim", options=options)
    assert caught.value.diagnostics[0].line == (1 if kind == "option" else 3)


def test_a_header_that_has_become_a_pipe_is_refused(tmp_path: Path) -> None:
    source = f"#include <value.h>\n__global__ void k(int *o) {{ *o = VALUE; }} // {tmp_path}"
    (tmp_path / "value.h").write_text("#define VALUE 3\n")
    compile_source(source, arch="sim", options=[f"-I{tmp_path}"])
    (tmp_path / "value.h").unlink()
    os.mkfifo(tmp_path / "value.h")
    with pytest.raises(CompileError, match="is no regular file"):
        compile_source(source, arch="sim", options=[f"-I{tmp_path}"])


CONSTRUCTED = "struct A { int v; __device__ A() { *(volatile int *)0 = 1; } };\n"


@pytest.mark.parametrize("check", [False, True, "memory", "count"])
@pytest.mark.parametrize("space", ["__device__", "__constant__", "static", ""])
def test_dynamic_initialisers_are_refused(space: str, check: bool | str) -> None:
    if check and space != "__device__":
        pytest.skip("once in each mode is enough")
    with pytest.raises(CompileError, match="dynamic initialization is not supported") as caught:
        simulator.compile(f"{CONSTRUCTED}\n{space} A a;\n__global__ void k(int *o) {{ *o = a.v; }}", check=check)
    assert caught.value.diagnostics[0].line == 3
    assert ("'a'" in str(caught.value)) == space.startswith("__")


def test_what_is_constant_needs_no_initialiser() -> None:
    source = """
struct B { int v; __device__ constexpr B(int x) : v(x) {} };
__device__ B b(3); __constant__ float table[3] = {1, 2}; __device__ int zeros[100]; __shared__ int s[4];
__global__ void k(int *o) { static int calls = 2; *o = b.v + zeros[1] + s[0] + calls + (int)table[1]; }
"""
    for check in (False, True):
        assert simulator.compile(source, check=check).kernels == ("k",)


@pytest.mark.parametrize("text", ["(", ")", "[", "{", "}", "<", "()", "<<<", "{ }", "({", "a(", "(\n"])
def test_a_megabyte_of_brackets_is_answered_at_once(text: str) -> None:
    source = f"\n__global__ void k(int *o) {{ *o = {text * (MEGABYTE // len(text))}; }}"
    start = time.process_time()
    with pytest.raises(CompileError) as caught:
        Unit(source, name="many.cu", arch="sim").image
    assert time.process_time() - start < 2, "it reads the source once"
    assert only_line(caught.value).startswith("many.cu:2:") and f"more than {MAX_BRACKETS} brackets" in str(
        caught.value
    )


def test_brackets_that_people_write_are_let_pass() -> None:
    nested = "(" * 200 + "1" + ")" * 200 + ";"
    refuse_nesting(f'{nested * 1000} /* {"(" * 5000} */ "{"[" * 5000}"\n#if 1\n' + "{}\n;" * 5000, "k")
    with pytest.raises(CompileError):
        refuse_nesting("(1+" * (MAX_BRACKETS + 1) + " " * 5000, "k")
