"""all-MiniLM-L6-v2 with its own weights: vectors beside a float64 reading of its file, tokens by both its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from llm import encoding
from safetensors.numpy import load_file

import pygpukit as gp

TEXTS = [
    "A cat sleeps on the mat.",
    "A kitten naps on the rug.",
    "The central bank raised interest rates by 0.25 percent.",
    "Caf\u00e9 na\u00efve \u4e2d\u6587 tokenisation, isn't it?",
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return gp.models.get("all-minilm-l6-v2", progress=False)


def test_vectors_are_those_of_its_file_in_float64(folder: Path) -> None:
    encoder = gp.llm.load_encoder("all-minilm-l6-v2", progress=False, dtype="float32")
    assert (encoder.context, encoder.dimensions, encoder.pooling.mode) == (256, 384, "mean")
    config, weights = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    found = encoder.embed(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        expected = encoding.states(config, weights, encoder.token_ids(text)).mean(0)
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=2e-6), text
    likeness = found @ found.T
    assert likeness[0, 1] > 0.6 and abs(likeness[0, 2]) < 0.2


def test_its_vocabulary_alone_gives_the_same_tokens(folder: Path, tmp_path: Path) -> None:
    whole = gp.llm.Tokenizer(folder)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(folder / name, tmp_path / name)
    alone = gp.llm.Tokenizer(tmp_path)
    assert alone.vocab_size == whole.vocab_size == 30522
    assert whole.encode(TEXTS[0]) == [101, 1037, 4937, 25126, 2006, 1996, 13523, 1012, 102]
    for text in [*TEXTS, "[MASK] unaffable\u0301 \U0001f680 " + "x" * 101]:
        assert alone.encode(text) == whole.encode(text)
        assert alone.decode(alone.encode(text)) == whole.decode(whole.encode(text))
