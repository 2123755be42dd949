"""The Rust classes of pygpukit under their documented import name: pygpukit.compat.rust itself, and its modules."""

import sys

from pygpukit.compat import rust

sys.modules[__name__] = sys.modules[f"{__name__}._pygpukit_rust"] = rust
for _name in ("device", "dispatch", "llm", "memory", "scheduler", "transfer"):
    sys.modules[f"{__name__}.{_name}"] = getattr(rust, _name)
