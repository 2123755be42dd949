"""What stands in tests/both runs on a GPU, too: `pytest -m gpu` takes only what asks for a backend by name."""

from __future__ import annotations

import re
from pathlib import Path

ASKS = re.compile(r"\b(backend_name|operation_backend)\b|\bmark\.gpu\b|from context_help import no_context_is_left")


def test_every_file_of_both_backends_asks_for_one() -> None:
    files = sorted((Path(__file__).parents[1] / "both").glob("test_*.py"))
    assert files
    assert [file.name for file in files if not ASKS.search(file.read_text(encoding="utf-8"))] == []
