"""Sound: librosa 0.11's functions, names and defaults on the device. Every name is fetched on first use."""

import sys

from pygpukit.ops.names import Package

sys.modules[__name__].__class__ = Package
