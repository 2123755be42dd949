"""Programs that take all they can get: each ends, alone, and the process that ran it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pygpukit.program import limits
from pygpukit.program.build import Source, build
from pygpukit.program.process import Process
from pygpukit.program.result import Result

HEAD = """#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>
"""


def run(body: str, tmp_path: Path, timeout_s: float = 60.0, show: list[str] | None = None) -> Result:
    shown = [] if show is None else show
    with Process(shown.append) as process:
        program = build([Source(f"{HEAD}int main() {{ {body} }}\n", "p.cu", tmp_path)])
        return process.run(program, ["p"], timeout_s)


def gone(process: int) -> bool:
    """True where it is, or soon will be."""
    for _ in range(200):
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def test_processes_without_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROCESSES", 20)
    result = run("for (;; usleep(1000)) if (fork() == 0) for (;;) pause();", tmp_path)
    assert result.crowded and result.exit_code == 128 + 9
    assert "more than" in result.ending and "processes" in result.ending


def test_what_left_the_group_ends_with_the_program(tmp_path: Path) -> None:
    shown: list[str] = []
    body = (
        "int ready[2]; pipe(ready);"
        " if (fork() == 0) { setsid(); if (fork() != 0) _exit(0); setsid();"
        " for (int s = 1; s < 32; ++s) signal(s, SIG_IGN);"
        ' std::printf("%d\\n", getpid()); std::fflush(stdout); write(ready[1], "", 1); for (;;) pause(); }'
        " char byte; return read(ready[0], &byte, 1) == 1 ? 5 : 6;"
    )
    assert run(body, tmp_path, show=shown).exit_code == 5
    assert gone(int("".join(shown)))


def test_signals_to_its_own_group_and_those_that_it_ignores(tmp_path: Path) -> None:
    assert run("for (int s = 1; s < 32; ++s) signal(s, SIG_IGN); for (;;) pause();", tmp_path, 1.0).timeout_s == 1.0
    assert run("kill(0, SIGKILL); for (;;) pause();", tmp_path).exit_code == 128 + 9
    assert run("return 3;", tmp_path).exit_code == 3


def test_output_beyond_what_is_shown_is_cut_and_the_program_goes_on(tmp_path: Path) -> None:
    shown: list[str] = []
    result = run(
        'for (int i = 0; i < 200000; ++i) std::puts("more and more and more"); return 4;', tmp_path, show=shown
    )
    assert result.exit_code == 4
    assert 1 << 20 <= sum(map(len, shown)) < (1 << 20) + 200 and "the rest is not shown" in shown[-1]


def test_memory_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.MEMORY_VARIABLE, "200MiB")
    body = (
        "long n = 0; for (; char *p = (char *)malloc(1 << 20); ++n) for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1;"
    )
    assert run(f"{body} return n > 100 && n <= 200 ? 7 : 1;", tmp_path).exit_code == 7


def test_a_file_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    body = f'int f = open("{path}", O_CREAT | O_WRONLY, 0600); lseek(f, {limits.FILE_BYTES - 1}l, SEEK_SET);'
    assert run(f'{body} write(f, "ab", 2); return write(f, "c", 1);', tmp_path).ending == "ended by SIGXFSZ"
    assert path.stat().st_size <= limits.FILE_BYTES


def test_a_size_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text("int main() { }\n")
    done = subprocess.run(
        [sys.executable, "-m", "pygpukit", "run", str(tmp_path / "p.cu")],
        capture_output=True, text=True, env={**os.environ, limits.MEMORY_VARIABLE: "much"},
    )  # fmt: skip
    assert done.returncode != 0 and limits.MEMORY_VARIABLE in done.stderr


def test_numbers_of_files_that_others_took_meanwhile_stay_theirs(tmp_path: Path) -> None:
    with Process([].append) as process:
        program = build([Source("int main() { return 7; }\n", "p.cu", tmp_path)])
        assert process.run(program, ["p"]).exit_code == 7
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]  # the numbers that are free again, too
    for one in others:
        os.close(one)
