"""Rows of suite `voice`: a conversation with real models, from the end of a question to the first sound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples
from pygpukit.core.extras import install_command

CATEGORY = "voice"
KOKORO, WHISPER, CHAT = MODELS = ("kokoro-82m", "whisper-tiny.en", "smollm2-135m-instruct")
QUESTION = "How many days are in a week?"
NAME = "conversation: from the end of a question to the first sound"


def rows(rounds: int) -> Iterator[BenchmarkResult | Unavailable]:
    """Milliseconds, and those of each stage. Nothing is fetched: without the models a line says what is missing."""
    if missing := _missing():
        yield Unavailable(f"{CATEGORY}/{NAME}", missing)
        return
    import numpy as np

    import pygpukit as gp
    from pygpukit.tts.wav import resample_audio

    kokoro = gp.tts.load(KOKORO, progress=False)
    voice = gp.pipeline.VoicePipeline(
        gp.asr.load(WHISPER, progress=False),
        gp.llm.load(CHAT, context=256, progress=False),
        kokoro,
        system_prompt="You are a voice assistant. Answer in one short sentence.",
        max_new_tokens=16,
    )
    asked = resample_audio(kokoro.synthesize(QUESTION).to_numpy(), kokoro.sample_rate, voice.sample_rate)
    taken_ms: list[float] = []
    stages: dict[str, list[float]] = {}
    for round_ in range(1 + rounds):
        voice.reset()
        voice.start_listening()
        start = time.perf_counter()
        answer = voice.hear(asked.astype(np.float32))
        next(answer)
        took_ms = 1e3 * (time.perf_counter() - start)
        for _ in answer:
            pass
        if round_ == 0:  # kernels are compiled
            continue
        taken_ms.append(took_ms)
        first = {row.stage: row for row in reversed(voice.timeline())}
        for stage, row in first.items():
            stages.setdefault(stage, []).append(1e3 * (row.end - row.start))
    yield from_samples(NAME, CATEGORY, taken_ms, "ms")
    for stage, each in stages.items():
        yield from_samples(f"conversation: first {stage}", CATEGORY, each, "ms")


def _missing() -> str:
    """The packages that a conversation lacks here, "" for none."""
    from pygpukit.models import catalogue, fetch

    absent = [name for name in MODELS if not fetch.present(catalogue.ENTRIES[name])]
    if absent:
        return f"not on this machine: {', '.join(absent)}; fetch them with: pygpukit models get NAME"
    if find_spec("hibari") is None:
        return f"hibari-tts, which makes phonemes of text, is not installed: {install_command('tts')}"
    return ""
