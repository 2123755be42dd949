"""Lists the built-in kernels that no test of tests/kernels launched on the simulator in checked mode, by source.

python tools/uncovered_kernels.py [what pytest shall run instead of tests/kernels]
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from typing import Any

import pytest


class Recorder:
    """A plugin of pytest: which instantiations were launched while PYGPUKIT_CHECK was 1."""

    def __init__(self) -> None:
        self.launched: set[tuple[str, str]] = set()

    def pytest_collection_finish(self) -> None:
        """After conftest.py has chosen the backend."""
        from pygpukit.jit import builtin

        alone = builtin.launch

        def launch(source_key: str, name_expression: str, *rest: Any) -> Any:
            kernel = alone(source_key, name_expression, *rest)
            if os.environ.get("PYGPUKIT_CHECK") == "1":
                self.launched.add((source_key, name_expression))
            return kernel

        builtin.launch = launch  # type: ignore[assignment]


def main() -> int:
    recorder = Recorder()
    status = pytest.main(["-q", *(sys.argv[1:] or ["tests/kernels"])], plugins=[recorder])
    from pygpukit.jit import builtin

    listed = [(key, expression) for key, expressions, _ in builtin.catalogue() for expression in expressions]
    missing = defaultdict(list)
    for key, expression in listed:
        if (key, expression) not in recorder.launched:
            missing[key].append(expression)
    for key, expressions in sorted(missing.items()):
        total = sum(own == key for own, _ in listed)
        print(f"{key}: {len(expressions)} of {total} were never launched", *expressions, sep="\n  ")
    print(f"{len(listed) - sum(map(len, missing.values()))} of {len(listed)} kernels were launched in checked mode")
    return int(status) or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
