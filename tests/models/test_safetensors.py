"""Safetensors: what the library writes reads back bit by bit; what is malformed is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import pygpukit as gp
from pygpukit.core.errors import ModelFileError
from pygpukit.llm import Dtype, SafeTensorsFile, ShardedSafeTensorsFile, load_safetensors

RNG = np.random.default_rng(1)
TYPES = [np.float32, np.float16, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]


def raw(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 5), (7, 13), (2, 3, 5, 7)])
def test_every_type_and_shape_reads_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = {np.dtype(kind).name: RNG.integers(0, 2, shape).astype(kind) for kind in TYPES}
    save_file(values, tmp_path / "m.safetensors")
    file = SafeTensorsFile(tmp_path / "m.safetensors")
    assert set(file.tensor_names) == set(values)
    assert file.num_tensors == len(file) == len(TYPES)
    assert file.file_size == (tmp_path / "m.safetensors").stat().st_size
    for name, want in values.items():
        info = file.tensor_info(name)
        got = file.array(name)
        assert got.dtype == want.dtype and got.shape == want.shape == tuple(info.shape)
        assert np.array_equal(got, want)
        assert file.tensor_bytes(name) == want.tobytes()
        assert info.numel == want.size and info.size_bytes == want.nbytes
        single = file.tensor_as_f32(name)
        assert single.dtype == np.float32 and np.array_equal(single, want.astype(np.float32))
        address, size = file.tensor_data_ptr(name)
        assert size == want.nbytes and (address or not want.size)
    file.close()


def test_bfloat16_is_bits_and_reads_as_float32(tmp_path: Path) -> None:
    bits = RNG.integers(0, 0x7F80, 99).astype("<u2")
    (tmp_path / "b").write_bytes(raw({"x": entry("BF16", [99], 0, 198)}, bits.tobytes()))
    file = SafeTensorsFile(tmp_path / "b")
    assert file.tensor_info("x").dtype is Dtype.BFloat16
    assert file.tensor_info("x").dtype.data_type == gp.bfloat16
    assert file.tensor_info("x").dtype_name == "bfloat16"
    assert Dtype.BFloat16.element_size == Dtype.element_size(Dtype.BFloat16) == Dtype.element_size(2) == 2
    assert Dtype.BFloat16.name == "BFloat16" and [int(one) for one in Dtype] == list(range(16))
    assert np.array_equal(file.array("x"), bits)
    assert np.array_equal(file.tensor_as_f32("x"), (bits.astype(np.uint32) << 16).view(np.float32))


MALFORMED = {
    "seven bytes": b"1234567",
    "header past the end": (1 << 40).to_bytes(8, "little") + b"{}",
    "no JSON": raw(b"{"),
    "no object": raw([1]),
    "deep": raw(b'{"a":' * 100_000),
    "not UTF-8": raw(b'{"\xff": 1}'),
    "a key twice": raw(b'{"a": 0, "a": 0}'),
    "no offsets": raw({"a": {"dtype": "U8", "shape": [1]}}, b"1"),
    "a number as tensor": raw({"a": 3}),
    "unknown type": raw({"a": entry("F7", [1], 0, 1)}, b"1"),
    "list as type": raw({"a": {"dtype": [], "shape": [1], "data_offsets": [0, 1]}}, b"1"),
    "negative length": raw({"a": entry("U8", [-1], 0, 1)}, b"1"),
    "length as float": raw({"a": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}}, b"1"),
    "length as bool": raw({"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, b"1"),
    "too few bytes for the shape": raw({"a": entry("F32", [2], 0, 4)}, b"1234"),
    "shape that wraps": raw({"a": entry("F32", [1 << 62, 4], 0, 0)}),
    "offsets backwards": raw({"a": entry("U8", [1], 1, 0)}, b"1"),
    "past the end": raw({"a": entry("U8", [2], 0, 2)}, b"1"),
    "bytes left over": raw({"a": entry("U8", [1], 0, 1)}, b"12"),
    "overlap": raw({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"123"),
    "a hole": raw({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, b"123"),
    "metadata that is no text": raw({"__metadata__": {"a": 1}}),
    "metadata that is a list": raw({"__metadata__": []}),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_refused_by_name(tmp_path: Path, case: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(MALFORMED[case])
    with pytest.raises(ModelFileError, match=r"m\.safetensors") as caught:
        SafeTensorsFile(path)
    assert caught.value.path.startswith(str(path))


def test_an_empty_file_and_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "e").touch()
    with pytest.raises(ModelFileError, match="empty"):
        SafeTensorsFile(tmp_path / "e")
    with pytest.raises(FileNotFoundError):
        SafeTensorsFile(tmp_path / "none")


def test_a_file_that_is_cut_while_open_raises(tmp_path: Path) -> None:
    save_file({"x": np.ones(1 << 16, np.float32)}, tmp_path / "m")
    file = SafeTensorsFile(tmp_path / "m")
    with (tmp_path / "m").open("r+b") as handle:
        handle.truncate(100)
    with pytest.raises(ModelFileError, match="was cut"):
        file.array("x")


def test_closed_means_closed_but_views_live(tmp_path: Path) -> None:
    save_file({"x": np.arange(9.0)}, tmp_path / "m")
    file = SafeTensorsFile(tmp_path / "m")
    view = file.array("x")
    file.close()
    assert view.sum() == 36 and not view.flags.writeable
    with pytest.raises(ModelFileError, match="closed"):
        file.array("x")


def shards(folder: Path, index: Any) -> Path:
    save_file({"a": np.ones(3, np.float32)}, folder / "one.safetensors")
    save_file({"b": np.zeros(5, np.int8)}, folder / "two.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_shards_read_as_one(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    both = load_safetensors(shards(tmp_path, index))
    assert isinstance(both, ShardedSafeTensorsFile)
    assert both.tensor_names == ["a", "b"] and len(both) == both.num_tensors == 2 and "b" in both
    assert both.array("b").shape == (5,) and both.tensor_as_f32("a").sum() == 3
    assert both.file_size == sum(file.stat().st_size for file in tmp_path.glob("*.safetensors"))
    with pytest.raises(KeyError, match="no tensor 'c'"):
        both.tensor_info("c")
    both.close()


@pytest.mark.parametrize(
    "file", ["../one.safetensors", "/etc/passwd", "x/../one.safetensors", "..", ".", "", 3, None, "a\0b"]
)
def test_an_index_may_only_name_files_beside_it(tmp_path: Path, file: Any) -> None:
    with pytest.raises(ModelFileError, match="only files beside it"):
        load_safetensors(shards(tmp_path, {"weight_map": {"a": file}}))


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": []}, []])
def test_a_malformed_index_is_refused(tmp_path: Path, index: Any) -> None:
    with pytest.raises(ModelFileError, match=r"index\.json"):
        load_safetensors(shards(tmp_path, index))


def test_an_index_that_is_wrong_about_its_files(tmp_path: Path) -> None:
    both = load_safetensors(shards(tmp_path, {"weight_map": {"a": "two.safetensors", "b": "gone.safetensors"}}))
    with pytest.raises(ModelFileError, match="does not have it"):
        both.array("a")
    with pytest.raises(ModelFileError, match="not beside it"):
        both.array("b")


def test_a_folder_of_several_files_without_an_index(tmp_path: Path) -> None:
    shards(tmp_path, {})
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ModelFileError, match=r"one\.safetensors, two\.safetensors"):
        load_safetensors(tmp_path)
    (tmp_path / "two.safetensors").unlink()
    assert load_safetensors(tmp_path).tensor_names == ["a"]


def test_parts_of_one_model_need_no_index(tmp_path: Path) -> None:
    one, two = (tmp_path / f"m-{number:05d}-of-00002.safetensors" for number in (1, 2))
    save_file({"a": np.ones(3, np.float32)}, one)
    with pytest.raises(ModelFileError, match=r"of the 2 parts of m are missing: m-00002-of-00002\.safetensors"):
        load_safetensors(tmp_path)
    save_file({"b": np.zeros(5, np.int8)}, two)
    both = load_safetensors(tmp_path)
    assert both.tensor_names == ["a", "b"] and both.array("b").shape == (5,)
    assert both.file_size == one.stat().st_size + two.stat().st_size
    both.close()
    save_file({"a": np.zeros(5, np.int8)}, two)
    with pytest.raises(ModelFileError, match="'a' is in m-00001-of-00002"):
        load_safetensors(tmp_path)


def test_a_whole_file_is_taken_before_an_index(tmp_path: Path) -> None:
    save_file({"c": np.ones(3, np.float32)}, shards(tmp_path, {"weight_map": {"a": "gone"}}) / "model.safetensors")
    assert load_safetensors(tmp_path).tensor_names == ["c"]


def test_hidden_files_are_none_of_a_model(tmp_path: Path) -> None:
    save_file({"c": np.ones(3, np.float32)}, tmp_path / "weights.safetensors")
    (tmp_path / "._weights.safetensors").write_bytes(b"\0\5\x16\7")
    assert load_safetensors(tmp_path).tensor_names == ["c"]
