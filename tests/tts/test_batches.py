"""Sentences in one pass of a small Kokoro with random weights: what each is alone, whatever lies beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from bench.voice_weights import kokoro_shapes
from pygpukit.ops import host
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts import batches
from pygpukit.tts.batches import Sentence
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers import convolution
from pygpukit.tts.layers.adapt import Activation, adapt
from pygpukit.tts.network import Network

Values = np.ndarray[Any, Any]


CONFIG = KokoroConfig(style_dim=2, plbert_hidden_size=12, plbert_num_attention_heads=3)


def narrow_weights() -> dict[str, gp.GPUArray]:
    """Every width a 64th of Kokoro's; pitches of some 150 Hz, durations of 1 to 4 frames, spectra near 1."""
    rng, weights = np.random.default_rng(), {}
    for name, shape in kokoro_shapes():
        narrow = [n // 64 + n % 64 for n in shape]
        if name.endswith("position_embeddings.weight"):
            narrow[0] = shape[0]  # places of tokens, no width
        values = rng.standard_normal(narrow, dtype=np.float32)
        values *= np.float32(1 / np.sqrt(max(1, values[0].size)))
        if "duration_proj" in name:
            values = values / 4 - np.float32(2.8)
        elif "conv_post" in name:
            values /= 64  # of the logarithm of the spectrum: without it some draws overflow
        elif "F0_proj.bias" in name:
            values += 150
        elif "orm.weight" in name or name.endswith("gamma") or ".alpha" in name:
            values = np.ones_like(values)
        weights[name] = gp.from_numpy(values)
    return weights


def small() -> Network:
    """Of narrow_weights()."""
    return Network(narrow_weights(), CONFIG)


def some(counts: tuple[int, ...]) -> list[Sentence]:
    rng = np.random.default_rng()
    return [
        Sentence(
            rng.integers(1, 50, count).tolist(),
            rng.standard_normal(4).astype(np.float32),
            float(rng.uniform(0.6, 1.6)),
            number if number else None,
        )
        for number, count in enumerate(counts)
    ]


def close(found: gp.GPUArray, expected: gp.GPUArray, tolerance: float) -> None:
    one, other = found.to_numpy(), expected.to_numpy()
    assert one.shape == other.shape
    assert np.isfinite(one).all()
    assert np.sqrt(np.square(one - other).mean()) <= tolerance * np.sqrt(np.square(other).mean())


def test_each_stage_of_a_pass_is_that_of_the_sentence_alone() -> None:
    network, sentences = small(), some((3, 11, 1, 6))
    styles = batches._styles(sentences)
    told = network.predict([each.tokens for each in sentences], styles, [each.speed for each in sentences])
    chosen = [3, 0, 2]  # any of them, in any order
    picked = batches._styles([sentences[number] for number in chosen])
    together = network.utterance(told, picked, chosen)
    seeds = [sentences[number].seed for number in chosen]
    layout = together.layout
    frames = layout.parts(network.frames(together, picked), 2)
    for place, number in enumerate(chosen):
        own = sentences[number]
        style = batches._styles([own])
        alone = network.prosody(own.tokens, style, own.speed)
        assert alone.durations == told.durations[number]
        for name, rate in (("pitch", 2), ("energy", 2), ("text", 1)):
            # Norms over the few frames of a short sentence make roundings larger.
            close(layout.parts(getattr(together, name), rate)[place], getattr(alone, name), 1e-4)
        close(frames[place], network.frames(alone, style), 1e-4)
    # The same source for both: its phases turn roundings of the pitch into other angles.
    source = network.generator.sources(together.pitch, seeds, layout)
    spectra = layout.parts(
        network.generator.spectrum(network.frames(together, picked), source, picked[:, :2], layout), 120, 1
    )
    for place, part in enumerate(layout.parts(source, 120, 1)):
        x, style = layout.parts(network.frames(together, picked), 2)[place], picked[place : place + 1, :2]
        alone_spectrum = network.generator.spectrum(x, part, style)
        close(spectra[place], alone_spectrum, 1e-4)
        close(network.generator.waveform(spectra[place]), network.generator.waveform(alone_spectrum), 1e-3)


def test_what_tensor_cores_round_is_near_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "tensor_cores", lambda: True)
    weights = narrow_weights()
    network = Network(weights, CONFIG)
    monkeypatch.setattr(convolution, "tensor_cores", lambda: False)
    exact = Network(weights, CONFIG)
    sentences = some((5, 2))
    styles = batches._styles(sentences)
    told = exact.predict([each.tokens for each in sentences], styles, [1.0, 1.0])
    rounded, wanted = (each.utterance(told, styles, [0, 1]) for each in (network, exact))
    layout = wanted.layout
    source = exact.generator.sources(wanted.pitch, [1, 2], layout)
    frames = exact.frames(wanted, styles)
    spectra = [each.generator.spectrum(frames, source, styles[:, :2], layout) for each in (network, exact)]
    pairs = (
        (rounded.pitch, wanted.pitch, 2, 0),
        (network.frames(wanted, styles), frames, 2, 0),
        (spectra[0], spectra[1], 120, 1),
    )
    for found, expected, rate, more in pairs:
        for one, other in zip(layout.parts(found, rate, more), layout.parts(expected, rate, more), strict=True):
            close(one, other, 2e-2)  # a few channels, whose roundings do not average


def test_the_bits_of_a_sentence_in_every_company(monkeypatch: pytest.MonkeyPatch) -> None:
    network, sentences = small(), some((2, 7, 1))
    alone = [batches.speak(network, [each])[0].to_numpy() for each in sentences]
    for one, other in zip(alone, batches.speak(network, sentences), strict=True):
        assert one.tobytes() == other.to_numpy().tobytes()
    assert batches.speak(network, []) == []


def test_passes_stay_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "computes", lambda: False)
    within = lambda *given: [list(part) for part in batches._within(*given)]  # noqa: E731
    assert within([3, 3, 4, 9, 20, 1], 10, False) == [[0, 1, 2], [3], [4], [5]]
    assert within([1, 1, 4, 5], 8, True) == [[0, 1], [2], [3]]
    assert within([], 8, True) == []


def test_spans_that_do_not_fit_are_refused() -> None:
    for pairs in ([(0, 3), (2, 1)], [(0, -1)], [(4, 2)]):
        with pytest.raises(gp.ShapeError, match="span"):
            Spans(pairs, 5)


@pytest.mark.parametrize("spans", [None, Spans([(1, 5), (6, 1), (9, 700)], 711)])
def test_adapt(spans: Spans | None) -> None:
    rng = np.random.default_rng()
    count, length = (2, 40) if spans is None else (3, 711)
    x = rng.standard_normal((2 if spans is None else 1, 3, length), dtype=np.float32) + 2
    scale, shift = rng.standard_normal((2, count, 3), dtype=np.float32)
    alpha = rng.uniform(0.5, 2, 3).astype(np.float32)
    pairs = [(0, length)] * 2 if spans is None else spans.pairs
    for act in (Activation(), Activation(slope=0.2), Activation(alpha=gp.from_numpy(alpha))):
        arrays = (gp.from_numpy(each) for each in (x, scale, shift))
        found = adapt(*arrays, 1e-5, plus_one=True, act=act, spans=spans)[0].to_numpy()
        expected = np.zeros(x.shape)
        for number, (start, size) in enumerate(pairs):
            own = x[number if spans is None else 0, :, start : start + size].astype(np.float64)
            own = (own - own.mean(1, keepdims=True)) / np.sqrt(own.var(1, keepdims=True) + 1e-5)
            own = own * (1 + scale[number][:, None]) + shift[number][:, None]
            own = np.where(own < 0, 0.2 * own, own) if act.slope else own
            own = own + np.sin(alpha[:, None] * own) ** 2 / alpha[:, None] if act.alpha is not None else own
            expected[number if spans is None else 0, :, start : start + size] = own
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    with pytest.raises(gp.ShapeError, match="adapt: weights of shapes"):
        adapt(gp.from_numpy(x), gp.zeros(2), None, 1e-5, spans=spans)
