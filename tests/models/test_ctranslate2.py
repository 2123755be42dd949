"""CTranslate2's model.bin: what is read, and that damaged files are refused, never worse."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.models.ctranslate2 import ModelBin

Array = np.ndarray[Any, Any]
NUMBERS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def text(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def packed(
    variables: dict[str, Array], aliases: dict[str, str] | None = None, spec: str = "WhisperSpec", version: int = 6
) -> bytes:
    """A file of these variables."""
    out = struct.pack("<I", version) + text(spec) + struct.pack("<2I", 3, len(variables))
    for name, values in variables.items():
        out += text(name) + struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
        out += struct.pack("<BI", NUMBERS[values.dtype.name], values.nbytes) + values.tobytes()
    out += struct.pack("<I", len(aliases or {}))
    for alias, name in (aliases or {}).items():
        out += text(alias) + text(name)
    return out


def whisper(width: int = 8, inner: int = 16, dtype: str = "float16") -> dict[str, Array]:
    """A tiny Whisper model's variables."""
    rng = np.random.default_rng(4)

    def new(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    found = {
        "encoder/conv1/weight": new(width, 80, 3),
        "encoder/conv1/bias": new(width),
        "encoder/conv2/weight": new(width, width, 3),
        "encoder/conv2/bias": new(width),
        "encoder/position_encodings/encodings": new(10, width),
        "decoder/embeddings/weight": new(60, width),
        "decoder/position_encodings/encodings": new(12, width),
        "encoder/num_heads": np.array(1, np.int16),
        "decoder/num_heads": np.array(1, np.int16),
        "decoder/activation": np.array(3, np.int8),
    }
    for stack in ("encoder", "decoder"):
        found |= _norm(f"{stack}/layer_norm", new, width)
        places = {"self_attention/linear_0": (3 * width, width), "self_attention/linear_1": (width, width)}
        places |= {"ffn/linear_0": (inner, width), "ffn/linear_1": (width, inner)}
        norms = ["self_attention", "ffn"]
        if stack == "decoder":
            places |= {f"attention/linear_{i}": (width * (1, 2, 1)[i], width) for i in range(3)}
            norms.append("attention")
        for place, shape in places.items():
            found |= {f"{stack}/layer_0/{place}/weight": new(*shape), f"{stack}/layer_0/{place}/bias": new(shape[0])}
        for place in norms:
            found |= _norm(f"{stack}/layer_0/{place}/layer_norm", new, width)
    return found


def _norm(place: str, new: Any, width: int) -> dict[str, Array]:
    return {f"{place}/gamma": new(width), f"{place}/beta": new(width)}


def folder(path: Path, raw: bytes) -> Path:
    (path / "model.bin").write_bytes(raw)
    (path / "config.json").write_text(json.dumps({"alignment_heads": [[0, 0]], "suppress_ids": [1]}))
    return path


def test_tensors_have_hugging_faces_names_and_values(tmp_path: Path) -> None:
    given = whisper()
    checkpoint = gp.models.open_checkpoint(
        folder(tmp_path, packed(given, {"decoder/projection/weight": "encoder/conv1/bias"}))
    )
    assert checkpoint.config["d_model"] == 8
    assert (checkpoint.config["vocab_size"], checkpoint.config["decoder_ffn_dim"]) == (60, 16)
    assert checkpoint.generation["alignment_heads"] == [[0, 0]]
    k = checkpoint.read("model.decoder.layers.0.self_attn.k_proj.weight", gp.float32)
    np.testing.assert_array_equal(k, given["decoder/layer_0/self_attention/linear_0/weight"][8:16].astype("float32"))
    v = checkpoint.read("model.decoder.layers.0.encoder_attn.v_proj.bias")
    np.testing.assert_array_equal(v, given["decoder/layer_0/attention/linear_1/bias"][8:])
    assert checkpoint.shape("model.encoder.layers.0.fc1.weight") == (16, 8)
    assert len(checkpoint.names()) == 11 + 16 + 26
    checkpoint.close()


def test_weights_of_eight_bits_are_scaled(tmp_path: Path) -> None:
    given = whisper(dtype="float32")
    name = "encoder/layer_0/ffn/linear_0/weight"
    scales = 127 / np.abs(given[name]).max(axis=1)
    whole, given[name] = given[name], np.round(given[name] * scales[:, None]).astype(np.int8)
    given[f"{name}_scale"] = scales.astype(np.float32)
    checkpoint = gp.models.open_checkpoint(folder(tmp_path, packed(given)))
    found = checkpoint.read("model.encoder.layers.0.fc1.weight")
    np.testing.assert_allclose(found, whole, atol=0.51 / scales.min())
    checkpoint.close()
    del given[f"{name}_scale"]
    with pytest.raises(gp.ModelFileError, match="weight_scale"):
        gp.models.open_checkpoint(folder(tmp_path, packed(given)))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (packed({}, version=3), "version is 3"),
        (packed({}, spec="TransformerSpec"), "TransformerSpec"),
        (packed({}), "no 'model.decoder.embed_tokens.weight'"),
        (packed({}, {"a": "b"}), "stands for 'b', which is not there"),
        (packed({"a": np.zeros(2, "float32")}) + b"x", "1 bytes follow"),
        (packed({"a": np.zeros(2, "float32")})[:-9], "ends at byte"),
        (struct.pack("<I", 6) + b"\x02\x00ab", "does not end with a zero"),
        (
            packed({"encoder/layer_0/self_attention/linear_0/weight": np.zeros((4, 2), "float32")}),
            "must be a multiple of 3",
        ),
        (packed({**whisper(), "decoder/activation": np.array(0, np.int8)}), "activation is number 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(gp.ModelFileError, match=message):
        gp.models.open_checkpoint(folder(tmp_path, raw))


def test_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    """Bytes changed, cut out and put in, two thousand times: a ModelFileError, or arrays within the file."""
    rng, whole = np.random.default_rng(7), packed(whisper(4, 4), {"x": "encoder/conv1/bias"})
    path, refused = tmp_path / "model.bin", 0
    starts = [0, 4, 20, 30, 60, len(whole) - 40]
    for _ in range(2000):
        raw = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = min(len(raw) - 1, int(rng.choice(starts)) + int(rng.integers(0, 40)))
            kind = rng.integers(0, 3)
            if kind == 0:
                raw[at] = rng.integers(0, 256)
            elif kind == 1:
                del raw[at : at + int(rng.integers(1, 9))]
            else:
                raw[at:at] = rng.bytes(int(rng.integers(1, 9)))
        path.write_bytes(raw)
        try:
            model = ModelBin(path)
        except gp.ModelFileError:
            refused += 1
            continue
        for name in model.variables:
            model.array(name)
        model.close()
    assert refused > 1000
