"""The clips of this folder, and what faster-whisper heard in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pygpukit.asr.audio import samples_of

HERE = Path(__file__).parent
GOLDENS: dict[str, Any] = json.loads((HERE / "goldens.json").read_text())
NAMES = tuple(GOLDENS["said"])
GAP = 8000


def clip(name: str) -> np.ndarray[Any, Any]:
    """A clip's samples; "joined" is all of them with half a second between."""
    if name != "joined":
        return samples_of(HERE / "clips" / f"{name}.wav")
    return np.concatenate([part for one in NAMES for part in (clip(one), np.zeros(GAP, np.float32))])
