"""The process of a program: opens the device while the program is still compiled, then loads it and calls its main().

`python -m pygpukit.program.child PARENT ORDER REPORT`: the process that asked, and descriptors of pipes, one with what
to run (pygpukit.program.process), one for what the runtime reports. Where ORDER closes without a word, there is nothing
to run.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.linux import die_with_parent
from pygpukit.program import libraries, limits


def main(parent: int, order: int, report: int) -> None:
    """Run what the order says. Ends the process."""
    with contextlib.suppress(OSError, AttributeError):
        die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in any program of C
    backend()
    with os.fdopen(order, "rb") as pipe:
        line = pipe.readline()
        if not line.strip():
            os._exit(0)
        words = json.loads(line)
        for unit, nbytes in words["images"]:
            native.program_image(unit, pipe.read(nbytes))
    for entry in words["entries"]:
        native.program_symbol(words["library"], *entry)
    os.set_inheritable(report, False)
    os.environ["PYGPUKIT_PROGRAM_CALLS"] = hex(native.program_calls())
    native.program_start(report, words["times"])
    libraries.install()
    limits.apply()
    _run(words["library"], words["arguments"])


def _run(library: str, arguments: Sequence[str]) -> None:
    """Load the library, which runs the constructors of its objects, call main(), and leave as a program of C does."""
    loaded = ctypes.CDLL(library, mode=os.RTLD_NOW)
    words = (ctypes.c_char_p * (len(arguments) + 1))(*(os.fsencode(one) for one in arguments), None)
    loaded.main.restype = ctypes.c_int
    status = loaded.main(len(arguments), words)
    ctypes.CDLL(None).exit(status)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
