"""What takes long is told to who waits for it on the same thread, and to nobody else."""

from __future__ import annotations

import threading

from pygpukit.core import doing
from pygpukit.jit.compile.compiler import compile_uncached


def test_a_compile_is_told_to_who_waits_for_it() -> None:
    heard: list[str] = []
    with doing.heard_by(heard.append):
        compile_uncached("__global__ void f(int* x) { x[0] = 1; }", name="told")
        other = threading.Thread(target=doing.say, args=("something else",))
        other.start()
        other.join()
    doing.say("later")
    assert heard == ["Compiling told"]
