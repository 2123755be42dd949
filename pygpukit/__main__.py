"""Entry point of `python -m pygpukit`, the same as the `pygpukit` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
