"""The tensors of Whisper and Kokoro by name, for random weights of their true shapes, and what random weights lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.asr.model import WhisperModel
    from pygpukit.tts.network import Network

Shapes = Iterator[tuple[str, tuple[int, ...]]]
EOT, FRAMES_A_TOKEN = 50257, 3
_NAMED = ("<|endoftext|>", "<|startoftranscript|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>")
_NUMBERS = dict(zip(_NAMED, (EOT, 50258, 50359, 50360, 50361), strict=True)) | {
    "<|startofprev|>": 50362,
    "<|nospeech|>": 50363,
    "<|notimestamps|>": 50364,
    "<|en|>": 50259,
}


class NumberTokenizer:
    """Whisper's named tokens; all others are their numbers."""

    def token_to_id(self, token: str) -> int | None:
        return _NUMBERS.get(token)

    def id_to_token(self, number: int) -> str:
        return next((token for token, known in _NUMBERS.items() if known == number), str(number))

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, tokens: list[int]) -> str:
        return "".join(f" {token}" for token in tokens)


def whisper(size: str) -> WhisperModel:
    """A multilingual size of WHISPER_CONFIGS with random weights, in the type that load() takes; it never ends a
    window by itself."""
    from pygpukit.asr.config import WHISPER_CONFIGS, WhisperConfig
    from pygpukit.asr.decoder import WhisperDecoder
    from pygpukit.asr.encoder import WhisperEncoder
    from pygpukit.asr.model import WhisperModel
    from pygpukit.asr.weights import from_checkpoint

    from .random_weights import RandomCheckpoint

    config = WhisperConfig.from_dict({**WHISPER_CONFIGS[size].to_dict(), "suppress_tokens": [EOT]})
    checkpoint: Any = RandomCheckpoint(size, config.to_dict(), dict(whisper_shapes(config)))
    weights = from_checkpoint(checkpoint, config=config, name=size)
    tokenizer: Any = NumberTokenizer()
    return WhisperModel(config, WhisperEncoder(config, weights), WhisperDecoder(config, weights), tokenizer, name=size)


def whisper_shapes(config: Any) -> Shapes:
    """Under Hugging Face's names."""
    width = config.d_model
    yield "encoder.conv1.weight", (width, config.num_mel_bins, 3)
    yield "encoder.conv2.weight", (width, width, 3)
    yield from ((f"encoder.conv{number}.bias", (width,)) for number in (1, 2))
    yield "decoder.embed_tokens.weight", (config.vocab_size, width)
    for stack, places, count, inner in (
        ("encoder", config.max_source_positions, config.encoder_layers, config.encoder_ffn_dim),
        ("decoder", config.max_target_positions, config.decoder_layers, config.decoder_ffn_dim),
    ):
        yield f"{stack}.embed_positions.weight", (places, width)
        norms = [f"{stack}.layer_norm"]
        for number in range(count):
            begin = f"{stack}.layers.{number}"
            kinds = ("self_attn", "encoder_attn") if stack == "decoder" else ("self_attn",)
            norms += [f"{begin}.{kind}_layer_norm" for kind in (*kinds, "final")]
            for kind in kinds:
                yield from ((f"{begin}.{kind}.{part}.weight", (width, width)) for part in _PROJECTIONS)
                yield from ((f"{begin}.{kind}.{part}.bias", (width,)) for part in _PROJECTIONS if part != "k_proj")
            yield from _linear(f"{begin}.fc1", inner, width)
            yield from _linear(f"{begin}.fc2", width, inner)
        yield from ((f"{norm}.{kind}", (width,)) for norm in norms for kind in ("weight", "bias"))


_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def kokoro() -> Network:
    """Kokoro's network with random weights; every token lasts FRAMES_A_TOKEN frames."""
    import numpy as np

    from pygpukit.array import factory
    from pygpukit.tts.config import KokoroConfig
    from pygpukit.tts.network import Network

    rng, weights = np.random.default_rng(0), dict[str, GPUArray]() if TYPE_CHECKING else {}
    for name, shape in kokoro_shapes():
        if "duration_proj" in name:  # each of the 50 sigmoids is that part of a frame
            part = FRAMES_A_TOKEN / 50
            values = np.full(shape, np.log(part / (1 - part)) if name.endswith("bias") else 0, np.float32)
        elif "Norm.weight" in name or "norm.weight" in name or name.endswith("gamma") or ".alpha" in name:
            values = np.ones(shape, np.float32)
        else:
            values = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        weights[name] = factory.from_numpy(values)
    return Network(weights, KokoroConfig())


def kokoro_shapes() -> Shapes:
    """Under PyTorch's names, weights folded."""
    yield from _albert()
    yield from _linear("bert_encoder", 512, 768)
    yield "text_encoder.embedding.weight", (178, 512)
    for i in range(3):
        yield from _convolution(f"text_encoder.cnn.{i}.0", 512, 512, 5)
        yield from ((f"text_encoder.cnn.{i}.1.{kind}", (512,)) for kind in ("gamma", "beta"))
    yield from _lstm("text_encoder.lstm", 512)
    for i in range(3):
        yield from _lstm(f"predictor.text_encoder.lstms.{2 * i}", 640)
        yield from _linear(f"predictor.text_encoder.lstms.{2 * i + 1}.fc", 1024, 128)
    for name in ("lstm", "shared"):
        yield from _lstm(f"predictor.{name}", 640)
    yield from _linear("predictor.duration_proj.linear_layer", 50, 512)
    for name in ("F0", "N"):
        yield from _residual(f"predictor.{name}.0", 512, 512)
        yield from _residual(f"predictor.{name}.1", 512, 256, pool=True)
        yield from _residual(f"predictor.{name}.2", 256, 256)
        yield from _convolution(f"predictor.{name}_proj", 1, 256, 1)
        yield from _convolution(f"decoder.{name}_conv", 1, 1, 3)
    yield from _convolution("decoder.asr_res.0", 64, 512, 1)
    yield from _residual("decoder.encode", 514, 1024)
    for i in range(4):
        yield from _residual(f"decoder.decode.{i}", 1090, 512 if i == 3 else 1024, pool=i == 3)
    yield from _generator("decoder.generator")


def _generator(begin: str) -> Shapes:
    yield from _linear(f"{begin}.m_source.l_linear", 1, 9)
    for i, (width, kernel, taps, passed) in enumerate(((256, 20, 12, 7), (128, 12, 1, 11))):
        yield f"{begin}.ups.{i}.weight", (2 * width, width, kernel)
        yield f"{begin}.ups.{i}.bias", (width,)
        yield from _convolution(f"{begin}.noise_convs.{i}", width, 22, taps)
        blocks = [(f"noise_res.{i}", passed), *((f"resblocks.{3 * i + k}", size) for k, size in enumerate((3, 7, 11)))]
        for block, size in blocks:
            for step in range(3):
                for half in (1, 2):
                    yield from _convolution(f"{begin}.{block}.convs{half}.{step}", width, width, size)
                    yield from _linear(f"{begin}.{block}.adain{half}.{step}.fc", 2 * width, 128)
                    yield f"{begin}.{block}.alpha{half}.{step}", (width,)
    yield from _convolution(f"{begin}.conv_post", 22, 128, 7)


def _albert() -> Shapes:
    for name, rows in (("word", 178), ("position", 512), ("token_type", 2)):
        yield f"bert.embeddings.{name}_embeddings.weight", (rows, 128)
    yield from _norm("bert.embeddings.LayerNorm", 128)
    yield from _linear("bert.encoder.embedding_hidden_mapping_in", 768, 128)
    layer = "bert.encoder.albert_layer_groups.0.albert_layers.0"
    for name in ("query", "key", "value", "dense"):
        yield from _linear(f"{layer}.attention.{name}", 768, 768)
    yield from _linear(f"{layer}.ffn", 2048, 768)
    yield from _linear(f"{layer}.ffn_output", 768, 2048)
    yield from _norm(f"{layer}.attention.LayerNorm", 768)
    yield from _norm(f"{layer}.full_layer_layer_norm", 768)


def _linear(name: str, rows: int, columns: int) -> Shapes:
    yield f"{name}.weight", (rows, columns)
    yield f"{name}.bias", (rows,)


def _norm(name: str, width: int) -> Shapes:
    yield from ((f"{name}.{kind}", (width,)) for kind in ("weight", "bias"))


def _convolution(name: str, filters: int, channels: int, kernel: int) -> Shapes:
    yield f"{name}.weight", (filters, channels, kernel)
    yield f"{name}.bias", (filters,)


def _lstm(name: str, columns: int, hidden: int = 256) -> Shapes:
    for direction in ("", "_reverse"):
        yield f"{name}.weight_ih_l0{direction}", (4 * hidden, columns)
        yield f"{name}.weight_hh_l0{direction}", (4 * hidden, hidden)
        yield from ((f"{name}.bias_{kind}_l0{direction}", (4 * hidden,)) for kind in ("ih", "hh"))


def _residual(name: str, channels: int, filters: int, pool: bool = False) -> Shapes:
    yield from _convolution(f"{name}.conv1", filters, channels, 3)
    yield from _convolution(f"{name}.conv2", filters, filters, 3)
    yield from _linear(f"{name}.norm1.fc", 2 * channels, 128)
    yield from _linear(f"{name}.norm2.fc", 2 * filters, 128)
    if pool:
        yield f"{name}.pool.weight", (channels, 1, 3)
        yield f"{name}.pool.bias", (channels,)
    if channels != filters:
        yield f"{name}.conv1x1.weight", (filters, channels, 1)
