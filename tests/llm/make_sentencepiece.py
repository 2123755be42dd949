"""Makes data/sentencepiece.json, with the package `sentencepiece`: small tokenizers, and the ids that it gives texts.

python tests/llm/make_sentencepiece.py
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SEED_TEXT = (HERE / "make_sentencepiece.py").read_text() + (HERE / "reference.py").read_text()
ODD = ["  ", " ", "\n", "\t", "e", "\u00e9", "\u65e5\u672c", "\U0001f389", "the", "word", "123", "\u2581"]


def texts() -> list[str]:
    """Parts of the text that it was trained on, and what it never saw."""
    rng = random.Random(5)
    found = ["", " ", "hello", " hello  world "]
    for _ in range(40):
        at = rng.randrange(len(SEED_TEXT))
        found += [SEED_TEXT[at : at + rng.randrange(60)], "".join(rng.choices(ODD, k=rng.randrange(12)))]
    return found


def trained(kind: str, prefix: bool) -> dict[str, Any]:
    """GGUF's fields of a tokenizer, and the ids of texts."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text").write_text(SEED_TEXT)
        sentencepiece.SentencePieceTrainer.train(
            input=f"{folder}/text",
            model_prefix=f"{folder}/m",
            vocab_size=500,
            model_type=kind,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=prefix,
            character_coverage=0.99,
        )
        made = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/m.model")
    count = made.get_piece_size()
    kinds = [
        2 if made.is_unknown(i) else 3 if made.is_control(i) else 6 if made.is_byte(i) else 1 for i in range(count)
    ]
    fields = {
        "model": {"bpe": "llama", "unigram": "t5"}[kind],
        "tokens": [made.id_to_piece(i) for i in range(count)],
        "scores": [made.get_score(i) for i in range(count)],
        "token_type": kinds,
        "bos_token_id": made.bos_id(),
        "eos_token_id": made.eos_id(),
        "unknown_token_id": made.unk_id(),
        "add_space_prefix": prefix,
    }
    own = [[text, made.encode(text), made.decode(made.encode(text))] for text in texts()]
    return {"fields": fields, "texts": own}


if __name__ == "__main__":
    cases = [trained(kind, prefix) for kind in ("bpe", "unigram") for prefix in (True, False)]
    (HERE / "data" / "sentencepiece.json").write_text(json.dumps(cases, ensure_ascii=True) + "\n")
