"""Tokenizers: SmolLM2's as transformers has it, streams that never split a character, malformed files refused."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import model_files
import pytest

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import install_command
from pygpukit.llm import Tokenizer
from pygpukit.llm.gguf_tokenizer import from_fields
from pygpukit.models import open_checkpoint

GOLDEN = json.loads((Path(__file__).parent / "data" / "smollm2_tokenizer.json").read_text())


@pytest.fixture(scope="module")
def real(smollm2: Path) -> Tokenizer:
    return open_checkpoint(smollm2).tokenizer()


@pytest.fixture(scope="module")
def small() -> Tokenizer:
    return from_fields(model_files.tokenizer_fields(), "made here")


def test_smollm2_encodes_and_decodes_as_transformers(real: Tokenizer) -> None:
    assert real.vocab_size == len(real) == GOLDEN["vocab_size"]
    assert {kind: getattr(real, kind) for kind in GOLDEN["tokens"]} == GOLDEN["tokens"]
    assert (real.bos_token_id, real.eos_token_id, real.pad_token_id) == (1, 2, 2)
    assert real.special_ids >= set(GOLDEN["special_ids"])
    for one in GOLDEN["texts"]:
        assert real.encode(one["text"]) == one["ids"], one["text"]
        assert real.decode(one["ids"]) == one["decoded"]
        assert real.decode(one["ids"], skip_special_tokens=True) == one["without_special"]
    # Without the file's own pre-tokenizer it is otherwise only where numbers follow spaces or are no ASCII digits.
    others = [one["text"] for one in GOLDEN["texts"] if one["ids"] != one["as_gpt2"]]
    assert 0 < len(others) < 20
    assert all(any(letter.isnumeric() for letter in text) for text in others)


def test_smollm2_talks_in_its_own_template(real: Tokenizer) -> None:
    for chat in GOLDEN["chats"]:
        text = real.render_chat(chat["messages"], add_generation_prompt=chat["add_generation_prompt"])
        assert text == chat["text"]
        ids = real.encode_chat(chat["messages"], add_generation_prompt=chat["add_generation_prompt"])
        assert ids == chat["ids"]


@pytest.mark.parametrize("special", [False, True])
def test_pieces_joined_are_the_whole_and_end_at_characters(real: Tokenizer, special: bool) -> None:
    rng = random.Random(7)
    garbage = [[rng.randrange(len(real)) for _ in range(rng.randrange(40))] for _ in range(200)]
    for ids in [*(one["ids"] for one in GOLDEN["texts"]), *garbage]:
        stream = real.stream(skip_special_tokens=special)
        pieces = [stream.push(number) for number in ids]
        assert "".join(pieces) + stream.finish() == real.decode(ids, skip_special_tokens=special)
    ids = real.encode("\U0001f680\u65e5 \U0001f468\u200d\U0001f469")
    stream = real.stream()
    assert not any("\ufffd" in stream.push(number) for number in ids)


def test_the_begin_of_a_character_comes_out_at_the_end(small: Tokenizer) -> None:
    ids = small.encode("a\U0001f680")
    assert len(ids) == 5
    stream = small.stream()
    assert [stream.push(number) for number in ids[:-1]] == ["a", "", "", ""]
    assert stream.finish() == "\ufffd"


SENTENCE_PIECES = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "pre_tokenizer": None,
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "post_processor": None,
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
              "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
              "vocab": {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}, "\u2581": 257, "h": 258,
                        "i": 259, "hi": 260, "\u2581hi": 261}, "merges": ["h i", "\u2581 hi"]},
}  # fmt: skip


def test_streams_of_other_tokenizers_too() -> None:
    tokenizer = Tokenizer.from_json(json.dumps(SENTENCE_PIECES))
    assert not tokenizer.byte_level
    for text in ("hi hi", "hi \U0001f680 hi", "\u65e5\u672c", "h\u00e9 i  hi", ""):
        ids = tokenizer.encode(text)
        stream = tokenizer.stream()
        pieces = [stream.push(number) for number in ids]
        assert not any("\ufffd" in piece for piece in pieces)
        assert "".join(pieces) + stream.finish() == tokenizer.decode(ids)


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "default", "llama-bpe", "qwen2"])
def test_pre_tokenizers_lose_nothing(pre: str) -> None:
    tokenizer = from_fields(model_files.tokenizer_fields(pre), "made here")
    for one in GOLDEN["texts"]:
        if pre != "qwen2":  # which composes characters
            assert tokenizer.decode(tokenizer.encode(one["text"])) == one["text"]
    assert tokenizer.encode("hello") == [259]


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("smollm", ["\u0120a", "1", "2", "3", "4", "\u0120\u0120", "5", "'s", "!?\u010a"]),
        ("gpt-2", ["\u0120a", "1234", "\u0120", "\u01205", "'s", "!?", "\u010a"]),
        ("llama-bpe", ["\u0120a", "123", "4", "\u0120", "\u0120", "5", "'s", "!?\u010a"]),
        ("qwen2", ["\u0120a", "1", "2", "3", "4", "\u0120", "\u0120", "5", "'s", "!?\u010a"]),
    ],
)
def test_pre_tokenizers_split_as_their_models_do(pre: str, pieces: list[str]) -> None:
    made = from_fields(model_files.tokenizer_fields(pre), "made here")._tokenizer
    got = [piece for piece, _ in made.pre_tokenizer.pre_tokenize_str(" a1234  5's!?\n")]
    if pre == "smollm":  # GPT-2's words, between single digits
        pieces = ["\u0120a", "1", "2", "3", "4", "\u0120\u0120", "5", "'s", "!?", "\u010a"]
    assert got == pieces


def test_special_tokens_by_kind_and_a_begin_that_is_added() -> None:
    fields = model_files.tokenizer_fields(**{"tokenizer.ggml.add_bos_token": True})
    tokenizer = from_fields(fields, "made here")
    assert tokenizer.encode("<|b|>hell<|c|>") == [260, 261, 258, 262]
    assert tokenizer.encode("hell", add_special_tokens=False) == [258]
    assert tokenizer.special_ids == {260, 261}
    assert tokenizer.decode([260, 258, 262], skip_special_tokens=True) == "hell<|c|>"
    assert tokenizer.id_to_token(258) == "hell" and tokenizer.token_to_id("hell") == 258
    assert tokenizer.id_to_token(9999) is None and tokenizer.id_to_token(-1) is None
    assert tokenizer.token_to_id("zzz") is None and tokenizer.decode([9999]) == ""


BAD_FIELDS: dict[str, dict[str, Any]] = {
    "of the kind 'llama'": {"tokenizer.ggml.model": "llama"},
    "pre-tokenizer is 'odd'": {"tokenizer.ggml.pre": "odd"},
    "is \\[1\\]": {"tokenizer.ggml.pre": [1]},
    "tokens is no list": {"tokenizer.ggml.tokens": [1, 2]},
    "merges is no list": {"tokenizer.ggml.merges": "he"},
    "list of 263 kinds": {"tokenizer.ggml.token_type": [1]},
    "twice": {"tokenizer.ggml.tokens": [*model_files.tokenizer_fields()["tokenizer.ggml.tokens"][:-1], "he"]},
    "'hell' is no pair": {"tokenizer.ggml.merges": ["hell"]},
    "no tokenizer that can be used": {"tokenizer.ggml.merges": ["h zz"]},
    "eos_token_id is 999": {"tokenizer.ggml.eos_token_id": 999},
    "chat template is a int": {"tokenizer.chat_template": 3},
}


@pytest.mark.parametrize("message", BAD_FIELDS)
def test_metadata_that_make_no_tokenizer(message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        from_fields(model_files.tokenizer_fields(**BAD_FIELDS[message]), "made here")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"model": {"type": "BPE"}}', '{"version": "1.0"}', "\0" * 100]
)
def test_a_malformed_tokenizer_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        Tokenizer(tmp_path)
    with pytest.raises(ModelFileError):
        Tokenizer.from_json(text)


def changed(**parts: Any) -> Tokenizer:
    return Tokenizer.from_json(json.dumps({**json.loads(model_files.tokenizer_json()), **parts}))


def test_hostile_tokenizers_neither_hang_nor_grow(capfd: pytest.CaptureFixture[str]) -> None:
    longer = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
    with pytest.raises(ModelFileError, match="10000 times as long"):
        changed(normalizer={"type": "Sequence", "normalizers": [longer, longer]})
    endless = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    with pytest.raises(ModelFileError, match="can be used"):
        changed(pre_tokenizer=endless).encode("a" * 40 + "b")
    capfd.readouterr()  # the library says it, too
    fixed = {
        "strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "x",
    }  # fmt: skip
    cut = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    assert changed(padding=fixed, truncation=cut).encode("hellhello") == [258, 259]


def test_a_folder_without_and_with_a_template_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no tokenizer\.json"):
        Tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(model_files.tokenizer_json())
    with pytest.raises(ModelFileError, match="no chat template"):
        Tokenizer(tmp_path).render_chat([])
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert Tokenizer(tmp_path / "tokenizer.json").render_chat([]) == "d"
    (tmp_path / "chat_template.jinja").write_text("j")
    assert Tokenizer(tmp_path).render_chat([]) == "j"
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelFileError, match="UTF-8"):
        Tokenizer(tmp_path)


def test_the_remedy_is_named_where_a_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("models"))):
        Tokenizer.from_json("{}")
