"""Running programs: `pygpukit run` as users call it, and a process that is interrupted, crashes, or leaves others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ADD = """#include <cstdio>
#include <cstring>

__global__ void add(const int *a, int *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] += a[i];
}

int main(int argc, char **argv)
{
    const int n = 100;
    int host[n], *a, *b;
    for (int i = 0; i < n; ++i) host[i] = i;
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&b, sizeof host);
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
    add<<<(n + 31) / 32, 32>>>(a, b, n);
    cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    std::printf("%d", host[n - 1]);
    for (int i = 1; i < argc; ++i) std::printf(" %s", argv[i]);
    std::printf("\\n");
    return argc;
}
"""


def run(*words: str | Path, folder: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pygpukit", "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, **settings)  # type: ignore[call-overload,no-any-return]


def test_its_output_arguments_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(ADD)
    done = run("p.cu", "--", "one", "--two", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "198 one --two\n", "")


def test_a_kernel_takes_the_address_of_a_device_function(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(
        "#include <cstdio>\ntypedef int (*function)(int);\n__device__ int twice(int x) { return 2 * x; }\n"
        "__device__ function chosen = twice;\n"
        "__global__ void k(function f, int *x) { int *y = new (x) int[1]; y[0] = f(x[0]); }\n"
        "int main() { function f; int h = 21, *p; cudaMalloc(&p, 4); cudaMemcpyFromSymbol(&f, chosen, sizeof f);\n"
        "  cudaMemcpy(p, &h, 4, cudaMemcpyHostToDevice); k<<<1, 1>>>(f, p);\n"
        '  cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); cudaFree(p); std::printf("%d\\n", h); }\n'
    )
    done = run("p.cu", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_memory_is_freed_whichever_device_is_current() -> None:
    corpus = Path(__file__).parent / "corpus"
    done = run("two_devices.cu", folder=corpus, env={**os.environ, "PYGPUKIT_SIM_DEVICES": "2"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "copied 21, doubled 42\n", "")


def test_a_profile_names_kernels_and_copies(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(ADD)
    done = run("p.cu", "--profile", "--trace", "t.json", folder=tmp_path)
    lines = [line.split() for line in done.stderr.splitlines()]
    assert done.returncode == 1 and ["kernel", "launches", "time", "mean"] in [line[:4] for line in lines]
    (add,) = [line for line in lines if line[:2] == ["add", "1"]]
    # 100 threads of 4 blocks load two numbers of 4 bytes and store one; no operation is in floating point.
    assert add[6:9] == ["1.17", "KiB", "0"] and add[-1].endswith("%")
    directions = [line[:4] for line in lines]
    assert ["host", "to", "device", "2"] in directions and ["device", "to", "host", "1"] in directions
    assert "default stream |=" in done.stderr and "times are the simulated device's" in done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    works = [(one["name"], one["args"]["line"]) for one in events if one["ph"] == "X"]
    assert works == [("host to device", 17), ("host to device", 18), ("add", 19), ("device to host", 20)]


def test_several_files_and_a_folder_of_headers(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "shared.h").write_text(
        "#pragma once\n#include <cuda_runtime.h>\nint twice(int);\nvoid fill(int *p, int v);\n"
        "#ifdef __CUDACC__\n__device__ inline int up(int x) { return x + 1; }\n#endif\n"
    )
    (tmp_path / "a.cu").write_text(
        '#include "shared.h"\nstatic __global__ void k(int *p, int v) { p[0] = up(v); }\n'
        "void fill(int *p, int v) { k<<<1, 1>>>(p, v); }\n"
    )
    (tmp_path / "b.cu").write_text(
        '#include <cstdio>\n#include "shared.h"\nstatic __global__ void k(int *p) { p[0] *= 2; }\n'
        "int main() { int h, *p; cudaMalloc(&p, 4); fill(p, twice(10)); k<<<1, 1>>>(p);\n"
        '  cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); cudaFree(p); std::printf("%d\\n", h); }\n'
    )
    (tmp_path / "c.cpp").write_text('#include "shared.h"\nint twice(int x) { return 2 * x; }\n')
    done = run("a.cu", "b.cu", "c.cpp", "-I", "inc", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ("int main() {\n  cudaNoSuchCall(1);\n}\n", "p.cu:2:", "cudaNoSuchCall"),
        (
            "__global__ void k(int *p) {\n  p[0] = missing;\n}\nint main() { k<<<1, 1>>>(nullptr); }\n",
            "p.cu:2:",
            "missing",
        ),
        ("#include <thrust/no_such_header.h>\nint main() { }\n", "p.cu:1:", "no_such_header"),
        (
            "__global__ void in() { }\n__global__ void k() {\n  in<<<1, 1>>>();\n}\nint main() { k<<<1, 1>>>(); }\n",
            "p.cu:3:",
            "launch",
        ),
    ],
)
def test_what_is_not_there_is_told_at_its_line_before_anything_runs(
    tmp_path: Path, body: str, place: str, words: str
) -> None:
    (tmp_path / "p.cu").write_text("#include <cstdio>\n#include <cuda_runtime.h>\n#line 1\n" + body)
    done = run("p.cu", folder=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert place in done.stderr and words in done.stderr and "Traceback" not in done.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run("none.cu", folder=tmp_path)
    assert done.returncode == 2 and done.stderr == "pygpukit run: there is no file none.cu\n"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("std::exit(7);", 7),
        ("std::abort();", 128 + signal.SIGABRT),
        ("*(volatile int *)8 = 1;", 128 + signal.SIGSEGV),
        ("raise(SIGKILL);", 128 + signal.SIGKILL),
        ("fclose(stdout); return 4;", 4),
    ],
)
def test_however_a_program_ends_its_code_is_the_commands(tmp_path: Path, statement: str, code: int) -> None:
    head = "#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n"
    (tmp_path / "p.cu").write_text(f'{head}int main() {{ std::puts("begun"); std::fflush(stdout); {statement} }}\n')
    done = run("p.cu", folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, "begun\n")


def test_a_program_that_never_ends_is_ended_with_what_it_started(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(
        "#include <cstdio>\n#include <unistd.h>\n"
        "int main() { if (fork() == 0) for (;;) pause();\n"
        'std::printf("%d\\n", getpgrp()); std::fflush(stdout); for (;;); }\n'
    )
    done = run("p.cu", "--timeout", "3", folder=tmp_path)
    assert done.returncode == 124 and "ended after 3 s" in done.stderr
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.killpg(int(done.stdout), 0)
            time.sleep(0.05)


def test_an_interrupt_ends_the_command_and_the_program(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(
        "#include <cstdio>\n#include <unistd.h>\n"
        'int main() { std::printf("%d\\n", getpid()); std::fflush(stdout); for (;;) pause(); }\n'
    )
    command = [sys.executable, "-m", "pygpukit", "run", "p.cu"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        program = int(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)
