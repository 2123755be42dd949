#!/usr/bin/env python3
"""Makes the clips and what faster-whisper hears in them: tests/asr/clips/*.wav and tests/asr/goldens.json.

python tests/asr/make_goldens.py [tiny.en-folder [base-folder]]    the folders as `pygpukit models get` fetched them

Needs faster-whisper and numpy, and pygpukit on the path to resample; only where clips are missing also espeak-ng, and
hibari-tts for Kokoro's. Float32, beam 1 and beam 5, temperature 0 alone, timestamps; what all clips of espeak-ng say
one after the other, for windows and prompts; times of words of some.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.feature_extractor import FeatureExtractor

import pygpukit as gp
from pygpukit.asr.audio import samples_of

HERE = Path(__file__).parent
CLIPS = HERE / "clips"
GOLDENS = HERE / "goldens.json"
SAID = {
    "fox": ("en-us", 150, "The quick brown fox jumps over the lazy dog."),
    "weather": ("en-gb", 140, "Good morning. The weather today will be cloudy with a chance of rain."),
    "train": ("en-us", 145, "The train to London leaves at seven thirty from platform two."),
    "question": ("en-gb", 140, "Would you like some coffee, or do you prefer tea?"),
    "numbers": ("en-us", 140, "One, two, three, four, five, six, seven, eight, nine, ten."),
    "library": ("en-us", 150, "Please return the books to the library before Friday."),
    "music": ("en-gb", 145, "She plays the piano and her brother plays the violin."),
    "history": ("en-us", 150, "The history of this old city goes back two thousand years."),
    "computer": ("en-us", 155, "My computer is very slow today, I should buy a new one."),
    "garden": ("en-gb", 145, "There are red and yellow flowers in the garden behind the house."),
    "short": ("en-us", 140, "Yes, thank you."),
    "science": ("en-us", 150, "Water boils at one hundred degrees and freezes at zero."),
}
SPOKEN = {  # by Kokoro: the voice, and what it says
    "letter": ("jm_kumo", "She put the letter back into the drawer and closed it."),
    "river": ("jf_alpha", "They walked along the river until the sun went down."),
    "boats": ("jm_kumo", "There are thirteen boats in the harbor today."),
    "doctor": ("jf_alpha", "The doctor told him to sleep more and worry less."),
}
MODELS = ("whisper-tiny.en", "whisper-base")
GAP = 8000  # samples of silence between clips that are joined
WORDS = ("weather", "numbers", "joined")


def make_clip(name: str) -> None:
    raw = CLIPS / f"{name}.raw.wav"
    if name in SPOKEN:
        voice, text = SPOKEN[name]
        gp.tts.load().synthesize(text, voice).to_wav(raw)
    else:
        voice, speed, text = SAID[name]
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(raw), text], check=True)
    samples = samples_of(raw)
    raw.unlink()
    with wave.open(str(CLIPS / f"{name}.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes())


def heard(model: WhisperModel, samples: np.ndarray[Any, Any], **settings: Any) -> dict[str, Any]:
    segments, info = model.transcribe(samples, temperature=0.0, **settings)
    found = [
        {
            "text": one.text,
            "start": one.start,
            "end": one.end,
            "tokens": list(one.tokens),
            "average_logprob": one.avg_logprob,
            "no_speech": one.no_speech_prob,
            **({"words": [[w.word, w.start, w.end, w.probability] for w in one.words]} if one.words else {}),
        }
        for one in segments
    ]
    return {"language": info.language, "segments": found}


def main() -> int:
    """Makes everything that is missing: what was heard is kept while a clip's digest is the same; delete goldens.json
    to hear all again."""
    CLIPS.mkdir(exist_ok=True)
    sounds = {}
    for name in (*SAID, *SPOKEN):
        if not (CLIPS / f"{name}.wav").exists():
            make_clip(name)
        sounds[name] = samples_of(CLIPS / f"{name}.wav")
    silence = np.zeros(GAP, np.float32)
    sounds["joined"] = np.concatenate([part for one in SAID for part in (sounds[one], silence)])
    digests = {name: hashlib.sha256((CLIPS / f"{name}.wav").read_bytes()).hexdigest() for name in (*SAID, *SPOKEN)}
    said = {name: text for name, (*_, text) in (SAID | SPOKEN).items()}
    golden: dict[str, Any] = {"said": said, "joined": list(SAID), "sha256": digests}
    known = json.loads(GOLDENS.read_text()) if GOLDENS.exists() else {"sha256": {}}
    same = {name for name in digests if known["sha256"].get(name) == digests[name]}
    golden |= {title: known[title] for title in MODELS if title in known}
    for title, folder in zip(MODELS, sys.argv[1:], strict=False):
        model = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=1)
        golden[title] = {name: one for name, one in known.get(title, {}).items() if name in same | {"joined"}}
        for name, samples in sounds.items():
            if name not in golden[title]:
                golden[title][name] = {
                    "beam1": heard(model, samples, beam_size=1),
                    "beam5": heard(model, samples, beam_size=5),
                    **({"words": heard(model, samples, beam_size=1, word_timestamps=True)} if name in WORDS else {}),
                }
                GOLDENS.write_text(json.dumps(golden, indent=1) + "\n")
    features = {str(bands): FeatureExtractor(feature_size=bands)(sounds["fox"]) for bands in (80, 128)}
    np.savez_compressed(HERE / "features.npz", **{name: one[:, ::7] for name, one in features.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
