#!/usr/bin/env python3
"""Speaks sentences with Kokoro and has Whisper tiny.en write them down: the word errors of text, speech and text again.

    python tools/speech_round_trip.py                    all 50 sentences by gp.tts and gp.asr, some minutes
    python tools/speech_round_trip.py --sentences 5      the first ones
    python tools/speech_round_trip.py --reference        onnxruntime's Kokoro beside it, with the same phonemes, and
                                                         faster-whisper hears both: needs both installed

Words are compared without case and punctuation, numbers as words. --json FILE writes what was heard.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    import pygpukit as gp

    Samples = np.ndarray[Any, Any]

SENTENCES = """
The train to the coast leaves at a quarter past seven.
She put the letter back into the drawer and closed it.
We have not seen rain in this valley since the spring.
Please bring two chairs and a small table to the garden.
The museum is closed on Monday, but the park is open.
He learned to play the piano when he was five years old.
Our neighbors are painting their house blue and white.
It was so quiet that we could hear the clock in the hall.
The cook added salt, pepper and a little lemon juice.
They walked along the river until the sun went down.
Nobody knew where the old key had been hidden.
The children built a castle out of sand and stones.
I would like a cup of tea without any sugar.
The bridge was repaired after the storm last winter.
A good book can make a long journey feel short.
The doctor told him to sleep more and worry less.
She speaks three languages and is learning a fourth.
The window was open, and a bird flew into the kitchen.
You can find fresh bread at the bakery on the corner.
The teacher wrote the answer on the board with chalk.
Most of the apples fell from the tree before October.
My brother works in a hospital near the station.
The meeting was moved to Thursday afternoon.
He carried the heavy box up the stairs by himself.
There are thirteen boats in the harbor today.
The moon was bright enough to read a newspaper.
We should leave early if we want to avoid the traffic.
The dog waited patiently beside the front door.
Her grandmother still bakes a cake every Sunday.
The lights went out, and everyone began to laugh.
This road leads through the forest to the lake.
The farmer sold his horses and bought a tractor.
Can you tell me how to get to the post office?
The soup is too hot to eat, so let it cool down.
They found a map of the island in the library.
Every morning he runs around the park before breakfast.
The painting shows a woman holding a glass of milk.
I forgot my umbrella, and of course it started to rain.
The engine stopped in the middle of the street.
The captain looked at the dark clouds and turned back.
Water boils faster when the pot has a lid.
The shop sells paper, pencils and old maps.
We watched the snow fall from the kitchen window.
Thank you for your help; I could not have done it alone.
The old man told the same story again and again.
A cold wind blew across the empty square.
The answer to that question is not easy to find.
She bought a ticket and waited on the platform.
The river freezes only once in twenty years.
When the music ended, nobody wanted to go home.
""".strip().splitlines()

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)\b")


def words(text: str) -> list[str]:
    """The words of a text as they are compared: numbers below a hundred spelled, spelling American."""
    text = _CLOCK.sub(r"\1 \2", text.lower().replace("-", " "))
    tokens = re.findall(r"[a-z']+|\d+", text.replace("\u2019", "'").replace("neighbour", "neighbor"))
    return [each for word in tokens for each in (_spelled(int(word)) if word.isdigit() else [word])]


def _spelled(number: int) -> list[str]:
    if number < 20:
        return [_ONES[number]]
    if number < 100:
        return [_TENS[number // 10 - 2], *([_ONES[number % 10]] if number % 10 else [])]
    return [str(number)]


def errors(said: list[str], heard: list[str]) -> int:
    """The fewest words put in, left out and changed."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def onnx_voice(folder: Path, model: gp.tts.KokoroModel) -> Callable[[str, str], Samples]:
    """Kokoro as onnxruntime runs the same file: phonemes and a voice give samples."""
    import numpy as np

    session = import_module("onnxruntime").InferenceSession(
        str(folder / "model.onnx"), providers=["CPUExecutionProvider"]
    )

    def speak(phonemes: str, voice: str) -> Samples:
        tokens = np.array([[0, *model.tokenizer.phonemes_to_tokens(phonemes), 0]])
        style = model.voice_embeddings.table(voice)[len(phonemes) - 1][None]
        inputs = {"tokens": tokens, "style": style, "speed": np.ones(1, np.float32)}
        return np.asarray(session.run(["audio"], inputs)[0]).ravel()

    return speak


def faster_whisper(folder: Path) -> Callable[[Samples], str]:
    """The text that faster-whisper hears, greedily, in float32."""
    import pygpukit as gp

    model = import_module("faster_whisper").WhisperModel(str(folder), device="cpu", compute_type="float32")

    def hear(samples: Samples) -> str:
        resampled = gp.tts.resample_audio(samples, 24000, 16000)
        return "".join(part.text for part in model.transcribe(resampled, beam_size=1, language="en")[0])

    return hear


def main() -> int:
    """Speak, hear, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--voice", default="jm_kumo")
    parser.add_argument("--seed", default="0", help="of the noise in the voice, or none")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    import pygpukit as gp

    kokoro, whisper = (gp.models.get(name, progress=False) for name in ("kokoro-82m", "whisper-tiny.en"))
    model = gp.tts.load(kokoro, voice=args.voice, progress=False)
    seed = None if args.seed == "none" else int(args.seed)
    if args.reference:
        hear, reference = faster_whisper(whisper), onnx_voice(kokoro, model)
    else:
        recogniser = gp.asr.load(whisper, progress=False)
        hear, reference = lambda samples: recogniser.transcribe(samples, 24000, beam_size=1).text, None
    counts: dict[str, int] = {}
    total, counted = 0, []
    for sentence in SENTENCES[: args.sentences]:
        said = words(sentence)
        total += len(said)
        spoken = model.synthesize(sentence, seed=seed)
        line = {"said": sentence, "pygpukit": hear(spoken.to_numpy())}
        if reference is not None:
            line["onnxruntime"] = hear(reference(spoken.phonemes, args.voice))
        for chain in line.keys() - {"said"}:
            counts[chain] = counts.get(chain, 0) + errors(said, words(line[chain]))
        counted.append(line)
        print(line, flush=True)
    result = {chain: round(100 * count / total, 2) for chain, count in counts.items()}
    print(f"{total} words; word errors in per cent: {result}")
    if args.json:
        args.json.write_text(json.dumps({"words": total, "word_error_rate": result, "heard": counted}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
