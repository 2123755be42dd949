#!/usr/bin/env python3
"""Makes what Silero's own code and faster-whisper find in sounds: tests/asr/silero.npz and silero.json.

python tests/asr/make_silero_goldens.py silero-vad-folder whisper-tiny.en-folder

Needs silero-vad 6.2.3 with torch, onnxruntime, faster-whisper, and pygpukit on the path. faster-whisper hears what
Silero's get_speech_timestamps() gives it: it carries other weights of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import faster_whisper.transcribe
import numpy as np
import onnxruntime
from asr.sounds import CASES, SPACED, course, noisy, spaced
from faster_whisper import WhisperModel
from silero_vad.utils_vad import get_speech_timestamps_from_probs

HERE = Path(__file__).parent


def probabilities(session: Any, sound: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    state, context, found = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
    sound = np.pad(sound, (0, -sound.size % 512))
    for chunk in sound.reshape(-1, 512):
        given = {"input": np.concatenate([context, chunk])[None], "state": state, "sr": np.array(16000)}
        told, state = session.run(None, given)
        found.append(told.item())
        context = chunk[-64:]
    return np.array(found, np.float32)


def main() -> int:
    """Makes both files."""
    session = onnxruntime.InferenceSession(str(Path(sys.argv[1]) / "silero_vad_16k_op15.onnx"))
    sounds = {"noisy": noisy(), "spaced": spaced()}
    found = {name: probabilities(session, sound) for name, sound in sounds.items()}
    np.savez_compressed(HERE / "silero.npz", **found)

    def pieces(told: Any, length: int, settings: dict[str, float]) -> list[tuple[int, int]]:
        cut = get_speech_timestamps_from_probs(list(told), audio_length_samples=length, **settings)
        return [(piece["start"], piece["end"]) for piece in cut]

    courses = {
        str(seed): [pieces(told, length, case) for case in CASES] for seed, (told, length) in enumerate(course())
    }
    real = {name: [pieces(found[name], sound.size, case) for case in CASES] for name, sound in sounds.items()}

    def theirs(audio: Any, options: Any) -> list[dict[str, int]]:
        return get_speech_timestamps_from_probs(list(found["spaced"]), audio_length_samples=audio.size, **SPACED)

    faster_whisper.transcribe.get_speech_timestamps = theirs
    model = WhisperModel(sys.argv[2], device="cpu", compute_type="float32", cpu_threads=1)
    told = model.transcribe(sounds["spaced"], temperature=0.0, beam_size=1, vad_filter=True, word_timestamps=True)
    heard = [{"text": one.text, "words": [[word.word, word.start, word.end] for word in one.words]} for one in told[0]]
    (HERE / "silero.json").write_text(json.dumps({"courses": courses, "real": real, "heard": heard}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
