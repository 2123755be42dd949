"""A GGUF model in several files: all parts by any of them, and what a part alone says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_files
import numpy as np
import pytest

from pygpukit.core.errors import ModelFileError
from pygpukit.models import open_checkpoint


def parts(folder: Path, count: int = 3, **changes: dict[str, Any]) -> list[Path]:
    """A small LLaMA in parts. changes: fields of single parts, as part0={...}."""
    folder.mkdir(exist_ok=True)
    tensors = model_files.tensors(model_files.LLAMA_SHAPES)
    made = []
    for number in range(count):
        own = dict(list(tensors.items())[number::count])
        fields: dict[str, Any] = {} if number else {**model_files.LLAMA, **model_files.tokenizer_fields()}
        fields |= {"split.no": number, "split.count": count, "split.tensors.count": len(tensors)}
        fields |= changes.get(f"part{number}", {})
        made.append(folder / f"m-{number + 1:05d}-of-{count:05d}.gguf")
        made[-1].write_bytes(model_files.gguf(fields, own))
    return made


def test_every_part_opens_the_whole(tmp_path: Path) -> None:
    whole = open_checkpoint(model_files.llama(tmp_path / "whole.gguf"))
    made = parts(tmp_path / "split")
    for path in (*made, tmp_path / "split"):
        model = open_checkpoint(path)
        assert set(model.names()) == set(whole.names()) and model.config == whole.config
        for name in whole.names():
            np.testing.assert_array_equal(model.read(name), whole.read(name))
        assert model.tokenizer().encode("hello") == whole.tokenizer().encode("hello")
        model.close()


def test_a_part_alone_says_so(tmp_path: Path) -> None:
    made = parts(tmp_path / "split")
    made[2].unlink()
    for path in made[:2]:
        with pytest.raises(ModelFileError, match=r"part [01] \(from 0 on\) of a model split in 3; beside it are"):
            open_checkpoint(path)
    alone = made[0].rename(tmp_path / "first.gguf")
    with pytest.raises(ModelFileError, match="found by names such as model-00001-of-00003"):
        open_checkpoint(alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part1": {"split.no": 2}}, "by itself part 2 of 3"),
        ({"part1": {"split.count": 4}}, "by itself part 1 of 4"),
        ({"part0": {"split.count": "3"}}, "no count of parts"),
        ({"part0": {"split.count": 5000}}, "no count of parts"),
        ({"part0": {"split.tensors.count": 99}}, "it says 99"),
    ],
)
def test_parts_that_do_not_belong_together(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        open_checkpoint(parts(tmp_path / "split", **change)[0])


def test_a_tensor_that_two_parts_have(tmp_path: Path) -> None:
    made = parts(tmp_path / "split")
    made[1].write_bytes(made[2].read_bytes().replace(b"split.no" + b"\x04\0\0\0\x02", b"split.no" + b"\x04\0\0\0\x01"))
    with pytest.raises(ModelFileError, match="too"):
        open_checkpoint(made[0])
