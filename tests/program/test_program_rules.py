"""What the runtime tells of a program on the simulated device, with the line: the bugs of beginners."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """#include <cstdio>
#include <cstdlib>
__global__ void set(int *where, int to) { *where = to; }
__global__ void say() { printf("hello\\n"); }
"""

# A body of main(), and the kind of its finding; the line is that of the mark.
RULES = {
    "host access to device memory, read": (
        "int *d; cudaMalloc(&d, 64);\nprintf(\"%d\\n\", d[3]);  // <-\ncudaFree(d);", "host access to device memory",
    ),
    "host access to device memory, write": (
        "int *d; cudaMalloc(&d, 64);\nd[0] = 5;  // <-\ncudaFree(d);", "host access to device memory",
    ),
    "wrong direction, source": (
        "int *d, h[4]; cudaMalloc(&d, 16);\ncudaMemcpy(h, d, 16, cudaMemcpyHostToDevice);  // <-\n"
        "cudaGetLastError(); cudaFree(d);",
        "wrong direction",
    ),
    "wrong direction, swapped": (
        "int *d, h[4]; cudaMalloc(&d, 16);\ncudaMemcpy(d, h, 16, cudaMemcpyDeviceToHost);  // <-\n"
        "cudaGetLastError(); cudaFree(d);",
        "wrong direction",
    ),
    "too long a copy": (
        "int *d, h[8] = {}; cudaMalloc(&d, 16);\ncudaMemcpy(d, h, 32, cudaMemcpyHostToDevice);  // <-\n"
        "cudaGetLastError(); cudaFree(d);",
        "out of bounds",
    ),
    "copy after free": (
        "int *d, h[4]; cudaMalloc(&d, 16); cudaFree(d);\ncudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost);  // <-\n"
        "cudaGetLastError();",
        "use after free",
    ),
    "kernel after free": (
        "int *d; cudaMalloc(&d, 16); cudaFree(d);\nset<<<1, 1>>>(d, 1);  // <-\ncudaDeviceSynchronize();\n"
        "cudaGetLastError();",
        "use after free",
    ),
    "double free": (
        "int *d; cudaMalloc(&d, 16); cudaFree(d);\ncudaFree(d);  // <-\ncudaGetLastError();", "double free",
    ),
    "free of what malloc() gave": (
        "int *h = (int *)malloc(16);\ncudaFree(h);  // <-\ncudaGetLastError(); free(h);", "bad free",
    ),
    "free of pinned memory": (
        "int *h; cudaMallocHost(&h, 16);\ncudaFree(h);  // <-\ncudaGetLastError(); cudaFreeHost(h);", "bad free",
    ),
    "leak": ("int *d;\ncudaMalloc(&d, 1000);  // <-", "leak"),
    "host pointer in a kernel": (
        "int h[4] = {};\nset<<<1, 1>>>(h, 1);  // <-\ncudaDeviceSynchronize();\ncudaGetLastError();",
        "host pointer in a kernel",
    ),
    "fill of host memory": (
        "int h[4];\ncudaMemset(h, 0, sizeof h);  // <-\ncudaGetLastError();", "wrong memory",
    ),
    "unchecked error of a call": ("void *d;\ncudaMalloc(&d, size_t(1) << 46);  // <-", "unchecked error"),
    "unchecked error of a launch": ("\nsay<<<1, 4096>>>();  // <-", "unchecked error"),
    "fault of a kernel": (
        "\nset<<<1, 1>>>(nullptr, 1);  // <-\ncudaDeviceSynchronize();\ncudaGetLastError();", "fault",
    ),
}  # fmt: skip


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pygpukit", "run", str(path), "--timeout", "60"], capture_output=True, text=True
    )


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_broken_is_told_with_its_line(rule: str, tmp_path: Path) -> None:
    body, kind = RULES[rule]
    text = f"{HEAD}int main() {{\n{body}\nreturn 0;\n}}\n"
    line = next(number for number, content in enumerate(text.splitlines(), 1) if "// <-" in content)
    path = tmp_path / "rules.cu"
    path.write_text(text)
    told = re.findall(r"^rules\.cu:(\d+): ([\w ]+): ", run(path).stderr, re.MULTILINE)
    assert told == [(str(line), kind)]


def test_what_nobody_waited_for_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "unshown.cu"
    path.write_text(f"{HEAD}int main() {{\nsay<<<1, 1>>>();\nreturn 0;\n}}\n")
    done = run(path)
    assert done.stdout == ""
    assert "output never shown" in done.stderr


def test_a_program_that_keeps_the_rules_is_told_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clean.cu"
    path.write_text(
        f"{HEAD}int main() {{\nint *d, h; cudaMalloc(&d, 4); set<<<1, 1>>>(d, 7);\n"
        "cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d); return h - 7;\n}\n"
    )
    done = run(path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
