"""Frames as samples and seconds."""

from __future__ import annotations

from typing import Any

import numpy as np


def positions(frames: np.ndarray[Any, Any], units: str, sr: float, hop_length: int, what: str) -> np.ndarray[Any, Any]:
    """Positions in frames, in units: "frames", "samples" or "time" (seconds). Raises ValueError for others."""
    if units == "frames":
        return frames
    if units == "samples":
        return frames * hop_length
    if units == "time":
        return frames * hop_length / float(sr)
    raise ValueError(f"{what}: units {units!r} is unknown; use 'frames', 'samples' or 'time'")
