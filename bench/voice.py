"""Suite `voice`: Whisper and Kokoro, true shapes with random weights, transformers' Whisper beside ours, and a
conversation with real weights.

A window is 30 s of noise, features included; TOKENS are chosen greedily in each. `python -m bench.voice
SIZE BATCH TOKENS` prints transformers' figures as JSON. On the simulation only a small size runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from . import conversation

CATEGORY = "voice"
SIZES = ("large-v3", "large-v3-turbo", "tiny")
TOKENS, BATCH, ROUNDS, STEPS = 64, 16, 3, 64
SPOKEN = (("100 phonemes", 100), ("a sentence of 10 words, 40 phonemes", 40))
TOGETHER = 8, 32
TIMEOUT_S = 300


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.backend import ensure, is_sim

    ensure()
    for size in SIZES:
        if is_sim() and size != "tiny":
            yield Unavailable(f"{CATEGORY}/{size}", "needs a GPU")
        else:
            yield from whisper_rows(size, *((2, 4, 1) if quick or is_sim() else (BATCH, TOKENS, ROUNDS)))
    if is_sim():
        yield from kokoro_rows((("3 phonemes", 3),), (), 1)
    else:
        yield from kokoro_rows(SPOKEN, TOGETHER, 1 if quick else 5)
    yield from conversation.rows(1 if quick or is_sim() else 7)


def whisper_rows(size: str, batch: int, tokens: int, rounds: int) -> Iterator[BenchmarkResult]:
    """Windows a second of a batch, milliseconds of one window, of its encoder and of a step of the decoder."""
    import numpy as np

    from .voice_weights import whisper

    model = whisper(size)
    params = {"shape": size, "tokens": tokens, "dtype": model.encoder.weights.dtype}
    rng = np.random.default_rng(1)
    sounds = [0.1 * rng.standard_normal(480_000, dtype=np.float32) for _ in range(batch)]
    settings: dict[str, Any] = {
        "language": "en",
        "temperature": 0.0,
        "timestamps": False,
        "max_length": tokens,
        "compression_ratio_threshold": None,
        "log_prob_threshold": None,
        "no_speech_threshold": None,
    }
    for count in (batch, 1):
        times = _times(lambda count=count: model.transcribe_batch(sounds[:count], **settings), rounds)  # type: ignore[misc]
        name = f"{size}: windows, {count} together" if count > 1 else f"{size}: one window"
        if count > 1:
            yield _rate(name, [count / each for each in times], "windows/s", {**params, "batch": count})
        else:
            yield _time(name, times, {**params, "batch": 1})
    mel = _mel(model, sounds[0])
    yield _time(f"{size}: encoder", _times(lambda: model.encoder(mel), rounds), {**params, "batch": 1})
    yield _time(f"{size}: step of the decoder", _step_times(model, mel, 8 if rounds == 1 else STEPS), params)


def _mel(model: Any, samples: Any) -> Any:
    from pygpukit.asr.features import Features

    return Features(samples, model.config.num_mel_bins).window(0, model.config.frames, model.config.frames)


def _step_times(model: Any, mel: Any, steps: int) -> list[float]:
    """Of one sequence, its logits on the host at the end of each."""
    decoder = model.decoder
    cache = decoder.cache(1, 1)
    decoder.hear(model.encoder(mel)[0], cache, 0)
    times = []
    for place in range(steps + 4):
        begin = time.perf_counter()
        decoder.step([place + 1], [place], [0], [0], cache).to_numpy()
        times.append(time.perf_counter() - begin)
    return times[4:]


def kokoro_rows(spoken: Sequence[tuple[str, int]], together: Sequence[int], rounds: int) -> Iterator[BenchmarkResult]:
    """Sound a second of computing, and the time until a sentence's samples are there: tokens to samples; and of so many
    sentences in one pass, each as long as the last."""
    import numpy as np

    from pygpukit.array import factory
    from pygpukit.tts import batches
    from pygpukit.tts.batches import Sentence

    from .voice_weights import FRAMES_A_TOKEN, kokoro

    network = kokoro()
    style = factory.from_numpy(0.1 * np.random.default_rng(2).standard_normal((1, 256), dtype=np.float32))

    def tokens(count: int) -> list[int]:
        return [0, *(1 + i % 100 for i in range(count)), 0]

    def speak(count: int) -> None:
        network.waveform(network.prosody(tokens(count), style, 1.0), style, 0)

    def all_of(sentences: int, count: int) -> None:
        batches.speak(
            network, [Sentence(tokens(count), style.to_numpy()[0], 1.0, number) for number in range(sentences)]
        )

    count = spoken[-1][1]
    for sentences in together:
        times = _times(lambda sentences=sentences: all_of(sentences, count), rounds)  # type: ignore[misc]
        seconds = sentences * (count + 2) * FRAMES_A_TOKEN * 0.025
        params = {"tokens": count, "sentences": sentences}
        rates = [seconds / each for each in times]
        yield _rate(f"Kokoro: {sentences} sentences of {count} phonemes together", rates, "x real time", params)
    for title, count in spoken:
        times = _times(lambda count=count: speak(count), rounds)  # type: ignore[misc]
        seconds = (count + 2) * FRAMES_A_TOKEN * 0.025
        yield _rate(f"Kokoro: {title}", [seconds / each for each in times], "x real time", {"tokens": count})
        yield _time(f"Kokoro: {title}, until it is there", times, {"tokens": count})


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """transformers, in the type that we use, with PyTorch's attention, beside Whisper's rows."""
    figures: dict[str, Any] = {}
    for mine in ours:
        size = mine.params.get("shape")
        if size is None:
            continue
        key = f"{mine.name} beside transformers"
        if size not in figures:
            batch = max(int(one.params.get("batch", 1)) for one in ours if one.params.get("shape") == size)
            figures[size] = _transformers(size, batch, int(mine.params["tokens"]))
        theirs = figures[size]
        if isinstance(theirs, str):
            yield Unavailable(f"{CATEGORY}/{key}", theirs)
            continue
        yield BenchmarkResult(
            key,
            CATEGORY,
            params=mine.params,
            value=mine.value,
            unit=mine.unit,
            better=mine.better,
            peer=f"transformers {theirs['version']}",
            peer_value=theirs[mine.name.split(": ")[1].split(",")[0]],
        )


def _transformers(size: str, batch: int, tokens: int) -> dict[str, Any] | str:
    """Its figures, or why there are none."""
    command = [sys.executable, "-m", __name__, size, str(batch), str(tokens)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {TIMEOUT_S} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return (done.stderr.strip().splitlines() or ["no message"])[-1][-200:]
    figures: dict[str, Any] = json.loads(lines[-1])
    return figures


def _times(call: Callable[[], object], rounds: int) -> list[float]:
    """Seconds of each call until the device has done it; one more before, which compiles."""
    from pygpukit._core import native

    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        call()
        native.synchronize()
        times.append(time.perf_counter() - begin)
    return times[1:]


def _time(name: str, seconds: list[float], params: dict[str, Any]) -> BenchmarkResult:
    return from_samples(name, CATEGORY, [each * 1e3 for each in seconds], "ms", params=params)


def _rate(name: str, rates: list[float], unit: str, params: dict[str, Any]) -> BenchmarkResult:
    return from_samples(name, CATEGORY, rates, unit, params=params, better="higher")


def transformers_figures(size: str, batch: int, tokens: int) -> dict[str, Any]:
    """The time of transformers for the same: its own features on the device, greedy, of a forced length."""
    import numpy as np
    import torch
    import transformers

    from pygpukit.asr.config import WHISPER_CONFIGS

    device, dtype = ("cuda", torch.float16) if torch.cuda.is_available() else ("cpu", torch.float32)
    fields = WHISPER_CONFIGS[size].to_dict()
    for name in ("suppress_tokens", "alignment_heads", "model_name_or_path", "torch_dtype"):
        fields.pop(name)
    config = transformers.WhisperConfig(**fields)
    with torch.device(device):
        model = transformers.WhisperForConditionalGeneration(config).to(dtype).eval()
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=50258, eos_token_id=50257, pad_token_id=50257, bos_token_id=50257
    )
    extractor = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins)
    rng = np.random.default_rng(1)
    sounds = [0.1 * rng.standard_normal(480_000, dtype=np.float32) for _ in range(batch)]

    def features(count: int) -> Any:
        extracted = extractor(sounds[:count], sampling_rate=16000, return_tensors="pt", device=device)
        return extracted.input_features.to(device, dtype)

    def generate(count: int) -> None:
        start = torch.full((count, 1), 50258, device=device)
        length = {"min_new_tokens": tokens, "max_new_tokens": tokens}
        transformers.generation.GenerationMixin.generate(
            model, features(count), decoder_input_ids=start, do_sample=False, **length
        )

    def seconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
        times = []
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            call()
            if device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return median(times[1:])

    with torch.no_grad():
        one = features(1)
        states = model.model.encoder(one)
        prompt = torch.full((1, 1), 5, device=device)
        cache: list[Any] = [None]

        def step() -> None:
            out = model(encoder_outputs=states, decoder_input_ids=prompt, past_key_values=cache[0], use_cache=True)
            cache[0] = out.past_key_values
            out.logits.float().cpu()

        return {
            "version": transformers.__version__,
            "windows": batch / seconds(lambda: generate(batch)),
            "one window": 1e3 * seconds(lambda: generate(1)),
            "encoder": 1e3 * seconds(lambda: model.model.encoder(one)),
            "step of the decoder": 1e3 * seconds(step, STEPS),
        }


if __name__ == "__main__":
    print(json.dumps(transformers_figures(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
