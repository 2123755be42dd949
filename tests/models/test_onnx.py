"""ONNX files: nodes and initialisers as they were written; cut off, wrong and foreign files refused."""

from __future__ import annotations

from pathlib import Path

import model_files
import numpy as np
import pytest
from model_files import message

from pygpukit.core.errors import ModelFileError
from pygpukit.models.onnx import OnnxFile


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(raw)
    return path


def test_nodes_and_tensors_come_back(tmp_path: Path) -> None:
    file = OnnxFile(written(tmp_path, model_files.onnx()))
    conv, relu = file.nodes
    assert (conv.op, conv.name, conv.inputs, conv.outputs) == ("Conv", "/part/conv/Conv", ("x", "w"), ("y",))
    assert conv.attributes == {"alpha": 0.5, "axis": -1, "pads": (1, 2), "strides": (3, -4)}
    assert (relu.op, relu.name, relu.attributes) == ("Relu", "", {})
    found = {name: file.array(name) for name in file.names()}
    assert np.array_equal(found["w"], np.arange(6, dtype=np.float32).reshape(2, 3)) and not found["w"].flags.writeable
    assert found["q"].dtype == np.int8 and found["q"].tolist() == [1, -1]
    assert found["shape"].dtype == np.int64 and found["shape"].tolist() == [1, -2, 3]
    assert found["one"].shape == () and found["one"] == 1.5
    assert found["byte"].dtype == np.uint8 and found["byte"] == 200
    assert file.shape("w") == (2, 3)
    with pytest.raises(KeyError):
        file.array("nowhere")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b"\x08\x01", "0 graphs"),
        (model_files.onnx()[:-30], "ends at"),
        (b"\xff" * 20, "longer than ten bytes|wire type"),
        (message((7, message((5, message((2, 99), (8, "x")))))), "data type 99"),
        (message((7, message((5, message((1, 3), (2, 1), (8, "x"), (9, b"1234567")))))), "has 7 bytes, its shape"),
        (message((7, message((5, message((1, -3), (2, 1), (8, "x"), (9, b"")))))), "the extent -3"),
        (message((7, message((5, message((1, 9), (2, 1), (8, "x"), (14, 1)))))), "files of their own"),
        (message((7, message((5, message((1, 9), (2, 6), (8, "x"), (5, 1)))))), "has 1 values"),
        (b"GGUF and so on", "wire type|cut off|ends at|0 graphs"),
    ],
)
def test_what_is_refused(tmp_path: Path, raw: bytes, said: str) -> None:
    path = written(tmp_path, raw)
    with pytest.raises(ModelFileError, match=said) as refused:
        OnnxFile(path)
    assert str(path) in str(refused.value)
