"""Of test files: those of operations, arrays and memory ask for a backend by name, as `pytest -m gpu` takes only those,
or for the simulator's kernels; names differ."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
FOLDERS = ("array", "memory", "ops", "telemetry", "textures")
ASKS = re.compile(r"\b(backend_name|operation_backend)\b|\bmark\.gpu\b|from context_help import no_context_is_left")
# What concerns the simulator alone, or computes nothing: kernels in checked mode, choices made for a device that need
# not be there, NVIDIA's libraries played by one of the test's own.
SIMULATED = re.compile(
    r"\b(kernels_on_sim|built_in_kernels|facts|planning|is_sim|catalogue)\b|toolchain import libraries"
)
WITHOUT_A_DEVICE = {
    "test_cell_time_sim.py",
    "test_elsewhere.py",
    "test_layout.py",
    "test_peer_transfers.py",
    "test_pinned_refused.py",
    "test_sim_textures.py",
}


def test_every_file_of_operations_asks_for_a_backend() -> None:
    files = [file for folder in FOLDERS for file in sorted((TESTS / folder).rglob("test_*.py"))]
    silent = {file.name for file in files if not ASKS.search(text := file.read_text()) and not SIMULATED.search(text)}
    assert len(files) > 90 and silent - WITHOUT_A_DEVICE == set()


def test_no_two_files_have_one_name() -> None:
    """pytest imports each by its bare name: of two that share one it refuses the second, where both run."""
    names = Counter(file.name for pattern in ("test_*.py", "sweep_*.py") for file in TESTS.rglob(pattern))
    assert [name for name, files in names.items() if files > 1] == []
