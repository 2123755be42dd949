"""The documented parts of other networks of synthesis than Kokoro's, beside NumPy's float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.tts import (
    BertLayer,
    BertSelfAttention,
    Conv1d,
    ConvTranspose1d,
    Decoder,
    ISTFTNet,
    KokoroConfig,
    LayerNorm,
    Linear,
    ResBlock1d,
    StyleEncoder,
    build_plbert_from_weights,
)

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.usefixtures("operation_backend")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def draw(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) / 3).astype(np.float32)


def on(x: Array) -> Any:
    return gp.from_numpy(x)


def near(result: Any, expected: Array) -> None:
    have = result.to_numpy()
    assert have.dtype == np.float32 and have.shape == expected.shape
    np.testing.assert_allclose(have, expected, rtol=0, atol=2e-5 * max(1.0, float(np.abs(expected).max())))


def leaky(x: Array) -> Array:
    return np.where(x > 0, x, 0.1 * x)


def normed(x: Array, weight: Array, bias: Array) -> Array:
    middle = x - x.mean(-1, keepdims=True)
    result: Array = middle / np.sqrt((middle**2).mean(-1, keepdims=True) + 1e-12) * weight + bias
    return result


def convolved(x: Array, weight: Array, bias: Array, padding: int) -> Array:
    taps = weight.shape[2]
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding)))
    places = wide.shape[2] - taps + 1
    windows = np.stack([wide[:, :, at : at + places] for at in range(taps)], axis=3)  # (B, C, L, K)
    result: Array = np.einsum("bclk,ock->bol", windows, weight.astype(np.float64)) + bias[:, None]
    return result


class Bert:
    """Weights by PyTorch's names, and the same computed in float64."""

    def __init__(self, rng: np.random.Generator, hidden: int, inner: int, layers: int) -> None:
        self.weights = {
            "embeddings.word_embeddings.weight": draw(rng, 11, hidden),
            "embeddings.position_embeddings.weight": draw(rng, 9, hidden),
            "final_norm.weight": draw(rng, hidden) + 1,
            "final_norm.bias": draw(rng, hidden),
        }
        for index in range(layers):
            for name, out, width in (
                ("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner),
            ):  # fmt: skip
                self.weights[f"encoder.layer.{index}.{name}.weight"] = draw(rng, out, width)
                self.weights[f"encoder.layer.{index}.{name}.bias"] = draw(rng, out)
            for name in ("attention.output.LayerNorm", "output.LayerNorm"):
                self.weights[f"encoder.layer.{index}.{name}.weight"] = draw(rng, hidden) + 1
                self.weights[f"encoder.layer.{index}.{name}.bias"] = draw(rng, hidden)
        self.layers = layers

    def expected(self, ids: Array, heads: int, mask: Array | None) -> Array:
        w = {name: value.astype(np.float64) for name, value in self.weights.items()}
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        for index in range(self.layers):

            def linear(y: Array, name: str, at: str = f"encoder.layer.{index}.") -> Array:
                result: Array = y @ w[f"{at}{name}.weight"].T + w[f"{at}{name}.bias"]
                return result

            def norm(y: Array, name: str, at: str = f"encoder.layer.{index}.") -> Array:
                return normed(y, w[f"{at}{name}.weight"], w[f"{at}{name}.bias"])

            q, k, v = (
                linear(x, f"attention.self.{name}").reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
                for name in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1]) + (0 if mask is None else mask)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            seen = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            x = norm(linear(seen, "attention.output.dense") + x, "attention.output.LayerNorm")
            inner = linear(x, "intermediate.dense")
            inner = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            x = norm(linear(inner, "output.dense") + x, "output.LayerNorm")
        return normed(x, w["final_norm.weight"], w["final_norm.bias"])


@pytest.mark.parametrize("masked", [False, True])
def test_plbert(rng: np.random.Generator, masked: bool) -> None:
    bert, heads = Bert(rng, 12, 20, 2), 3
    config = KokoroConfig(plbert_num_attention_heads=heads)
    model = build_plbert_from_weights(config, {f"bert.{name}": on(w) for name, w in bert.weights.items()})
    assert len(model.layers) == 2 and isinstance(model.layers[0], BertLayer)
    attention = model.layers[0].attention
    assert isinstance(attention, BertSelfAttention) and attention.all_head_size == 12
    ids = rng.integers(0, 11, (2, 7))
    mask = np.float32([[0] * 7, [0] * 4 + [-1e9] * 3])[:, None, None] if masked else None
    near(model(on(ids), None if mask is None else on(mask)), bert.expected(ids, heads, mask))
    with pytest.raises(InvalidSpecError, match="10 tokens are given, there are 9 positions"):
        model(on(np.zeros((1, 10), np.int64)))


def test_plbert_refuses_what_does_not_fit(rng: np.random.Generator) -> None:
    weights = {f"bert.{name}": on(w) for name, w in Bert(rng, 12, 20, 1).weights.items()}
    with pytest.raises(InvalidSpecError, match="5 heads do not divide a width of 12"):
        build_plbert_from_weights(KokoroConfig(plbert_num_attention_heads=5), weights)
    del weights["bert.encoder.layer.0.output.dense.weight"]
    with pytest.raises(InvalidSpecError, match=r"bert\.encoder\.layer\.0\.output\.dense\.weight"):
        build_plbert_from_weights(KokoroConfig(plbert_num_attention_heads=3), weights)


def test_styles_and_residual_blocks(rng: np.random.Generator) -> None:
    x = draw(rng, 2, 3, 11)
    weights = [(draw(rng, 3, 3, 3), draw(rng, 3)) for _ in range(2)]
    convs = [Conv1d(on(weight), on(bias), padding=1) for weight, bias in weights]
    style = expected = x.astype(np.float64)
    for weight, bias in weights:
        expected = expected + convolved(leaky(expected), weight, bias, 1)
        style = leaky(convolved(style, weight, bias, 1))
    near(ResBlock1d(convs)(on(x)), expected)
    speaker = draw(rng, 2, 3)
    scale, shift = draw(rng, 3) + 1, draw(rng, 3)
    encoder = StyleEncoder(convs, LayerNorm(on(scale), on(shift), 1e-12), output_dim=3)
    near(encoder(on(x), on(speaker)), normed(style.mean(2), scale, shift) + speaker)
    with pytest.raises(ShapeError, match="3 channels, not 128"):
        StyleEncoder(convs)(on(x))


def test_a_mel_spectrogram_of_durations(rng: np.random.Generator) -> None:
    text, style = draw(rng, 2, 4, 5), draw(rng, 2, 3)
    first, last = (draw(rng, 6, 8), draw(rng, 6)), (draw(rng, 7, 6), draw(rng, 7))
    decoder = Decoder(Linear(on(first[0]), on(first[1])), [gp.tts.tanh], Linear(on(last[0]), on(last[1])), n_mels=7)
    durations = np.array([2, 0, 1, 3])
    for counts in (None, durations, on(durations)):
        wide = text if counts is None else np.repeat(text, durations, axis=1)
        both = np.concatenate([wide, np.repeat(style[:, None], wide.shape[1], axis=1)], axis=2).astype(np.float64)
        mel = np.tanh(both @ first[0].T + first[1]) @ last[0].T + last[1]
        near(decoder(on(text), on(style), counts), mel.transpose(0, 2, 1))
    with pytest.raises(InvalidSpecError, match="must be 4 integers from 0 on"):
        decoder(on(text), on(style), [1, -1, 1, 1])
    decoder.n_mels = 80
    with pytest.raises(InvalidSpecError, match="7 bands, n_mels is 80"):
        decoder(on(text), on(style))


def test_a_vocoder(rng: np.random.Generator) -> None:
    config = KokoroConfig(gen_istft_n_fft=8, gen_istft_hop_size=2)
    mel, up = draw(rng, 2, 3, 6), draw(rng, 3, 4, 4)
    blocks = [(draw(rng, 4, 4, 3), draw(rng, 4)) for _ in range(2)]
    last = draw(rng, 10, 4, 1), draw(rng, 10)
    net = ISTFTNet(
        config,
        [ConvTranspose1d(on(up), None, 2, 1)],
        [ResBlock1d([Conv1d(on(weight), on(bias), padding=1)]) for weight, bias in blocks],
        Conv1d(on(last[0]), on(last[1])),
    )
    assert (net.n_fft, net.hop_size) == (8, 2)
    length = 2 * 5 - 2 + 4
    wide = np.zeros((2, 4, length + 2))
    for at in range(6):
        wide[:, :, 2 * at : 2 * at + 4] += np.einsum("bi,iok->bok", leaky(mel[:, :, at]), up)
    x = wide[:, :, 1:-1]
    x = np.mean([x + convolved(leaky(x), weight, bias, 1) for weight, bias in blocks], axis=0)
    x = convolved(leaky(x), last[0], last[1], 0)
    spectrum = np.exp(x[:, :5]) * np.exp(1j * np.sin(x[:, 5:]))
    window = np.sin(np.pi * np.arange(8) / 8) ** 2
    frames = spectrum.shape[2]
    signal, weight = np.zeros((2, 2 * (frames - 1) + 8)), np.zeros(2 * (frames - 1) + 8)
    for at in range(frames):
        signal[:, 2 * at : 2 * at + 8] += np.fft.irfft(spectrum[:, :, at], 8) * window
        weight[2 * at : 2 * at + 8] += window**2
    near(net(on(mel)), (signal / np.where(weight > 0, weight, 1))[:, 4:-4])
    with pytest.raises(InvalidSpecError, match="3 residual blocks are given for 2 steps up"):
        ISTFTNet(config, net.ups * 2, [*net.resblocks, net.resblocks[0]], net.output_conv)
    with pytest.raises(ShapeError, match="10 channels, 22 are needed"):
        ISTFTNet(KokoroConfig(), net.ups, net.resblocks, net.output_conv)(on(mel))
