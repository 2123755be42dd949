"""A process that compiles for its parent: requests come as pickles on stdin, images or errors go back on stdout.

Started by jit/launch/parallel.py. It ends when its stdin does.
"""

from __future__ import annotations

import os
import pickle
import sys
import time

from pygpukit.core.linux import die_with_parent
from pygpukit.jit.compile.compiler import compile_source


def main() -> None:
    die_with_parent(os.getppid())  # and the compiler with this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that prints may come between the answers
    pickle.dump(True, answers)  # ready: from now on an interrupt ends this process without a word
    answers.flush()
    while True:
        try:
            source, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        start_ns = time.perf_counter_ns()
        answer: object
        try:
            answer = compile_source(source, **arguments)
        except Exception as error:
            answer = error
        pickle.dump((answer, time.perf_counter_ns() - start_ns), answers)
        answers.flush()


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)  # a compile that still runs in a thread is left behind
