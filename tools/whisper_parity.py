#!/usr/bin/env python3
"""Holds Whisper tiny.en and base in float32 against what faster-whisper heard: all clips, greedy and with five beams.

    python tools/whisper_parity.py [whisper-tiny.en whisper-base] [--json FILE]

Clips and goldens are those of tests/asr (make_goldens.py makes them). Compared are text, token ids, times, the language
and the mean log of the tokens' probabilities. Fails where text, tokens or times differ. Some minutes on the simulation.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))


def compared(result: Any, golden: dict[str, Any]) -> dict[str, Any]:
    """The fields that are the same, and how far figures are apart."""
    theirs = golden["segments"]
    pairs = list(zip(result.segments, theirs, strict=False))
    # faster-whisper has ends after the sound's.
    both = [((one.start, other["start"]), (one.end, min(other["end"], result.duration))) for one, other in pairs]
    times = [abs(ours - golden_time) for pair in both for ours, golden_time in pair]
    return {
        "text": [one.text for one in result.segments] == [one["text"] for one in theirs],
        "tokens": [one.tokens for one in result.segments] == [one["tokens"] for one in theirs],
        "language": result.language in (None, golden["language"]),
        "seconds_apart": round(max(times, default=0.0), 6),
        "logs_apart": round(max((abs(a.average_logprob - b["average_logprob"]) for a, b in pairs), default=0.0), 6),
    }


def main() -> int:
    """Exit status 1 where something differs."""
    from asr.sounds import GOLDENS, NAMES, clip

    import pygpukit as gp

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", default=["whisper-tiny.en", "whisper-base"])
    parser.add_argument("--json", type=Path, help="a file for the figures")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for title in arguments.models:
        model = gp.asr.load(title, progress=False, dtype="float32")
        for beams in (1, 5):
            for name in NAMES:
                result = model.transcribe(clip(name), beam_size=beams, temperature=0.0)
                golden = GOLDENS[title][name][f"beam{beams}"]
                rows.append({"model": title, "beams": beams, "clip": name, **compared(result, golden)})
                print(json.dumps(rows[-1]), flush=True)
        if arguments.json is not None:
            arguments.json.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    wrong = [row for row in rows if not (row["text"] and row["tokens"] and row["language"]) or row["seconds_apart"]]
    print(
        f"{len(rows) - len(wrong)} of {len(rows)} are the same; logs at most {max(r['logs_apart'] for r in rows)} apart"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
