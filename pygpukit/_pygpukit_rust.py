"""`pygpukit._pygpukit_rust`: the import path that older installations used for the Rust classes."""

import sys

import _pygpukit_rust

sys.modules[__name__] = _pygpukit_rust
