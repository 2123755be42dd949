"""What kernels of a script print is shown however the script waits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

START = """
import pygpukit as gp
k = gp.jit(r'''__global__ void k(int* x, int wrong) {
  x[0] = printf("hello %d %s%%\\n", threadIdx.x, "you");
  if (wrong) *(volatile int*)0 = 1;
}''')
x, s, e = gp.zeros(4, dtype="int32"), gp.Stream(), gp.Event()
"""
WAITS = {
    "to_numpy": "k[1, 1](x, 0); x.to_numpy()",
    "item": "k[1, 1](x, 0); x[0].item()",
    "tolist": "k[1, 1](x, 0); x.tolist()",
    "device": "k[1, 1](x, 0); gp.synchronize()",
    "stream": "with s:\n    k[1, 1](x, 0)\ns.synchronize()",
    "event": "with s:\n    k[1, 1](x, 0)\n    e.record()\ne.synchronize()",
    "polling": "k[1, 1, s](x, 0)\nwhile not s.query(): pass",
    "fault": "k[1, 1](x, 1)\ntry:\n    gp.synchronize()\nexcept gp.DriverError:\n    pass",
}


def script(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYGPUKIT_BACKEND": "sim"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("wait", list(WAITS))
def test_every_wait_shows_it_before_what_python_prints_next(wait: str) -> None:
    assert script(WAITS[wait] + "\nprint('then')") == "hello 0 you%\nthen\n"


def test_the_end_of_the_program_shows_it_too() -> None:
    assert script("k[1, 1](x, 0)") == "hello 0 you%\n"


def test_printf_gives_the_number_of_its_arguments() -> None:
    assert script("k[1, 1](x, 0); print(x.tolist())") == "hello 0 you%\n[2, 0, 0, 0]\n"
