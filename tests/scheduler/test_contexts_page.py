"""docs/contexts.md: its Python examples run as they are written, on both backends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "contexts.md"


@pytest.mark.usefixtures("backend_name")
def test_the_examples_run(capsys):
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 5
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    peak, gpu_ns, share = capsys.readouterr().out.split()
    assert int(peak) >= 5 * 64 * 64 * 4 and int(gpu_ns) > 0 and 0 <= float(share) <= 1
