"""Of test files: each in tests/both asks for a backend by name, as `pytest -m gpu` takes only those; names differ."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ASKS = re.compile(r"\b(backend_name|operation_backend)\b|\bmark\.gpu\b|from context_help import no_context_is_left")


def test_every_file_of_both_backends_asks_for_one() -> None:
    files = sorted((Path(__file__).parents[1] / "both").glob("test_*.py"))
    assert files
    assert [file.name for file in files if not ASKS.search(file.read_text(encoding="utf-8"))] == []


def test_no_two_files_have_one_name() -> None:
    """pytest imports each by its bare name: of two that share one it refuses the second, where both run."""
    names = Counter(file.name for file in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name, files in names.items() if files > 1] == []
