"""Entry point of `python -m pygpukit.benchmark.figures`."""

import sys

from .cli import main

sys.exit(main())
