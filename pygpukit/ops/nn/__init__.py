"""Operations of neural networks, a folder a family. Every name is fetched on first use."""

import sys

from pygpukit.ops.names import Package

sys.modules[__name__].__class__ = Package
