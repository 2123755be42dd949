"""Operations on arrays, a folder a family. Every name is fetched on first use: most programs use few of them."""

import sys

from pygpukit.ops.names import Package

sys.modules[__name__].__class__ = Package
