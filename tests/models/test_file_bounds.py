"""What opening a file may cost: pipes and devices are refused, and so is what would take far more memory."""

from __future__ import annotations

import json
import os
import socket
import struct
from pathlib import Path

import model_files
import pytest

from pygpukit.core.errors import ModelFileError
from pygpukit.llm import SafeTensorsFile, Tokenizer
from pygpukit.models import open_checkpoint


@pytest.mark.parametrize("name", ["m.gguf", "m.safetensors", "tokenizer.json"])
def test_pipes_sockets_and_devices_are_refused_at_once(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = Tokenizer if name == "tokenizer.json" else open_checkpoint
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFileError, match="a pipe"):
        use(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(ModelFileError, match="a device"):
        use(tmp_path / name)
    (tmp_path / name).unlink()
    monkeypatch.chdir(tmp_path)  # a socket's path may have a hundred letters
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(name)
        with pytest.raises(ModelFileError, match="a socket"):
            use(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[' + b"[]," * (1 << 20) + b"1]}",
        b'{"a":[' + b'{"":0},' * 400000 + b"1]}",
        b"{" + b",".join(b'"%x":0.5' % number for number in range(1000000)) + b"}",
    ],
)
def test_json_that_would_take_much_memory_is_refused_before_it_is_read(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(ModelFileError, match="too large: reading it could take"):
        open_checkpoint(tmp_path)
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(ModelFileError, match="too large: reading it could take"):
        SafeTensorsFile(tmp_path / "m.safetensors")


def test_half_a_character_in_json_is_refused(tmp_path: Path) -> None:
    for raw in (b'{"a": "\\ud800"}', b'{"\\uDC00": 1}', b'{"a": "\xed\xa0\x80"}'):
        (tmp_path / "config.json").write_bytes(raw)
        with pytest.raises(ModelFileError, match=r"config\.json: it (has half a character|is no UTF-8)"):
            open_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"a": "\U0001f600"}))
    with pytest.raises(ModelFileError, match=r"no \.safetensors file"):
        open_checkpoint(tmp_path)


def test_a_vocabulary_that_would_take_much_memory_is_refused(tmp_path: Path) -> None:
    words = ",".join(f'"{number:x}":{number}' for number in range(1000000))
    (tmp_path / "tokenizer.json").write_text('{"model":{"type":"BPE","vocab":{' + words + '},"merges":[]}}')
    with pytest.raises(ModelFileError, match="too large: reading it could take"):
        Tokenizer(tmp_path)


def test_lists_and_texts_of_gguf_are_bounded(tmp_path: Path) -> None:
    def opened(value: bytes, tensors: int = 0, fields: int = 1) -> None:
        head = b"GGUF" + struct.pack("<IQQ", 3, tensors, fields)
        (tmp_path / "m.gguf").write_bytes(head + model_files.text("key") + value)
        open_checkpoint(tmp_path / "m.gguf")

    count = (2 << 20) + 1
    with pytest.raises(ModelFileError, match="more than 2097152 items"):
        opened(struct.pack("<IIQ", 9, 0, count) + bytes(count))
    with pytest.raises(ModelFileError, match="more than 2097152 items"):
        opened(struct.pack("<IIQ", 9, 8, count) + bytes(8 * count))
    with pytest.raises(ModelFileError, match="at most 16777216 are read"):
        opened(struct.pack("<IQ", 8, 17 << 20) + bytes(17 << 20))
    with pytest.raises(ModelFileError, match="1000000 metadata entries; at most 131072"):
        opened(bytes(14 << 20), fields=1000000)
    with pytest.raises(ModelFileError, match="1000000 tensors; at most 131072"):
        opened(bytes(25 << 20), tensors=1000000)


def test_metadata_of_safetensors_may_be_null(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": None, "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"ab")
    file = SafeTensorsFile(tmp_path / "m.safetensors")
    assert file.metadata == {} and file.tensor_names == ["a"]
