"""Entry point of `python -m bench`: the command of pygpukit.benchmark, with every suite."""

import sys

from pygpukit.benchmark import main

sys.exit(main(prog="python -m bench"))
