"""open_checkpoint: folders, lone files and what is refused whatever its name."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import model_files
import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import ModelFileError, ModelNotFoundError
from pygpukit.models import Checkpoint, open_checkpoint
from pygpukit.models.convert import convert
from pygpukit.ops import host

WEIGHTS = {"model.norm.weight": np.linspace(-3, 3, 64, dtype=np.float32), "h": np.ones((2, 3), np.float16)}


def test_a_folder(tmp_path: Path) -> None:
    model = open_checkpoint(model_files.folder(tmp_path / "small", WEIGHTS, hidden_size=64))
    assert isinstance(model, Checkpoint)
    assert (
        model.name == "small" and model.config == {"model_type": "llama", "hidden_size": 64} and model.generation == {}
    )
    assert set(model.names()) == set(WEIGHTS)
    assert model.shape("h") == (2, 3) and model.dtype("h") == gp.float16
    assert np.array_equal(model.read("h"), WEIGHTS["h"])
    bits = model.read("model.norm.weight", gp.bfloat16)
    assert np.array_equal(bits, host.bfloat16_bits(WEIGHTS["model.norm.weight"]))
    tokenizer = model.tokenizer()
    assert tokenizer is model.tokenizer() and tokenizer.eos_token == "<|b|>"
    assert tokenizer.render_chat([]) == "<|a|>x"
    model.close()


def test_a_lone_file_with_and_without_a_configuration(tmp_path: Path) -> None:
    folder = model_files.folder(tmp_path / "small", WEIGHTS, hidden_size=64)
    assert open_checkpoint(folder / "model.safetensors").config["hidden_size"] == 64
    (folder / "config.json").unlink()
    lone = open_checkpoint(folder / "model.safetensors")
    assert lone.config == {} and lone.name == "model"
    assert open_checkpoint(folder).config == {}


def test_a_folder_of_one_gguf_file(tmp_path: Path) -> None:
    model_files.llama(tmp_path / "one.gguf")
    assert open_checkpoint(tmp_path).config["hidden_size"] == 32


def test_of_several_gguf_files_one_is_to_be_given(tmp_path: Path) -> None:
    model_files.llama(tmp_path / "one.gguf")
    for beside in ("._one.gguf", "mmproj-one-f16.gguf"):
        (tmp_path / beside).write_bytes(b"no model that is read")
        assert open_checkpoint(tmp_path).config["hidden_size"] == 32
    model_files.llama(tmp_path / "two.gguf")
    with pytest.raises(ModelFileError, match=r"several GGUF files; give one of them: one\.gguf, two\.gguf"):
        open_checkpoint(tmp_path)


def test_a_folder_of_the_hubs_cache_is_called_by_its_repository(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--owner--some-model" / "snapshots" / "0123abc"
    snapshot.parent.mkdir(parents=True)
    assert open_checkpoint(model_files.folder(snapshot, WEIGHTS)).name == "owner/some-model"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_pointer_in_the_place_of_a_file(tmp_path: Path, name: str) -> None:
    folder = model_files.folder(tmp_path / "small", WEIGHTS)
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(ModelFileError, match=f"{name}: it is a pointer of Git LFS"):
        open_checkpoint(folder).tokenizer()


def test_gpt2_names_are_the_same_with_and_without_the_prefix(tmp_path: Path) -> None:
    model = open_checkpoint(model_files.folder(tmp_path / "g", {"transformer.wte.weight": np.ones((2, 2), np.float32)}))
    assert model.names() == ("wte.weight",) and model.read("wte.weight").sum() == 4


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("name", ["model.safetensors", "m.gguf", "pytorch_model.bin"])
def test_a_pickle_is_refused_by_content(tmp_path: Path, protocol: int, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({"a": [1] * 50}, protocol=protocol))
    with pytest.raises(ModelFileError, match="pickle"):
        open_checkpoint(tmp_path / name)


def test_a_pickle_in_a_zip_is_refused_and_so_is_a_folder_of_them(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(1))
    with pytest.raises(ModelFileError, match=r"pickle.*safetensors or \.gguf"):
        open_checkpoint(tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelFileError):
        open_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(ModelFileError, match="pickle"):
        open_checkpoint(tmp_path)


def test_other_files_and_unknown_names(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"hello, this is text")
    with pytest.raises(ModelFileError, match="neither a safetensors nor a GGUF"):
        open_checkpoint(tmp_path / "x.safetensors")
    (tmp_path / "empty").touch()
    with pytest.raises(ModelFileError):
        open_checkpoint(tmp_path / "empty")
    with pytest.raises(ModelNotFoundError, match="smollm2-135m-instruct"):
        open_checkpoint("no-such-model")


@pytest.mark.parametrize("want", [gp.float32, gp.float16, gp.bfloat16, gp.float64, gp.float8_e4m3])
def test_conversion_rounds_as_arrays_do(want: gp.DataType) -> None:
    values = np.concatenate([np.random.default_rng(2).standard_normal(2_000_003) * 100, [np.inf, -np.inf, np.nan, 1e9]])
    values = values.astype(np.float32)
    expected = gp.empty(values.shape, want)
    with np.errstate(over="ignore"):
        host.store(expected, values)
    got = convert(values, gp.float32, want)
    assert got.dtype == want.to_numpy_dtype()
    assert np.array_equal(got, host.memory(expected), equal_nan=got.dtype.kind == "f")


def test_bfloat16_becomes_what_it_stands_for() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = convert(bits, gp.bfloat16, gp.float32)
    assert np.array_equal(wide.view(np.uint32), bits.astype(np.uint32) << 16)
    finite = np.isfinite(wide)
    assert np.array_equal(convert(wide, gp.float32, gp.bfloat16)[finite], bits[finite])
    assert convert(bits, gp.bfloat16, gp.bfloat16) is bits
