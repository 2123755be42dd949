"""Entry point of `python -m bench.figures`."""

import sys

from .cli import main

sys.exit(main())
