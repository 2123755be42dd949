"""Pre-tokenizers of byte-level vocabularies by the names that GGUF files have for them: where a text is split first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + _SPACE
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_ASCII_MARKS = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"


def _words(numbers: str, letters: str = r"\p{L}", short: str = _SHORT + "|") -> str:
    """The pattern of LLaMA 3 and Qwen2: words with one mark before them, numbers, marks with line breaks, spaces."""
    return f"{short}{_LEAD}{letters}+|{numbers}{_REST}"


def _cased(numbers: str, short: str) -> str:
    """Words end where lower case ends: GPT-4o's, and Mistral's tekken."""
    rest = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACE
    return f"{_LEAD}{_UPPER}*{_LOWER}+{short}|{_LEAD}{_UPPER}+{_LOWER}*{short}|{numbers}{rest}"


@dataclass(frozen=True)
class PreTokenizer:
    """patterns: each splits the pieces of those before it. whole: a piece that is a token stays one, whatever the
    merges say. begins: a text begins with the token for it, unless the file says no. composed: text is NFC first."""

    patterns: tuple[str, ...]
    ignores_merges: bool = False
    begins: bool = False
    composed: bool = False

    def build(self, library: Any) -> Any:
        """As one of the library `tokenizers`."""
        splits = [library.pre_tokenizers.Split(library.Regex(pattern), "isolated") for pattern in self.patterns]
        bytes_of = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return library.pre_tokenizers.Sequence([*splits, bytes_of])


_LLAMA3 = PreTokenizer((_words(r"\p{N}{1,3}"),), ignores_merges=True, begins=True)
_THREE = PreTokenizer((_words(r"\p{N}{1,3}"),))
_QWEN2 = PreTokenizer((_words(r"\p{N}"),))
_PLAIN = PreTokenizer((_GPT2,))
_DIGITS = PreTokenizer((r"\p{N}", _GPT2))
_GPT4O = PreTokenizer((_cased(r"\p{N}{1,3}", _SHORT + "?"),))
_DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    _ASCII_MARKS + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + _SPACE,
)
_KINDS: tuple[tuple[str, PreTokenizer], ...] = (
    ("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", _LLAMA3),
    ("dbrx smaug-bpe glm4 chatglm-bpe", _THREE),
    ("qwen2 qwen2.5", PreTokenizer(_QWEN2.patterns, composed=True)),
    ("deepseek-r1-qwen stablelm2 hunyuan megrez grok-2 solar-open kormo f2llmv2", _QWEN2),
    ("qwen35", PreTokenizer((_words(r"\p{N}", r"[\p{L}\p{M}]").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]"),))),
    ("gpt-2 gpt2 phi-2 mpt olmo jais trillion granite-docling gigachat a.x-4.0 mellum exaone4", _PLAIN),
    ("jina-es jina-de jina-v2-es jina-v2-de modern-bert", _PLAIN),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", _DIGITS),
    ("gpt-4o llama4 kanana2 minimax-m2 talkie", _GPT4O),
    ("tekken", PreTokenizer((_cased(r"\p{N}", ""),), ignores_merges=True, begins=True)),
    ("default", PreTokenizer((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))),
    ("falcon", PreTokenizer((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"))),
    (
        "deepseek-llm",
        PreTokenizer(
            (
                r"[\r\n]",
                r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                _HAN,
                r"\p{N}+",
            )
        ),
    ),
    ("deepseek-coder", PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN, r"\p{N}"))),
    ("deepseek-v3 hunyuan-dense joyai-llm", PreTokenizer(_DEEPSEEK3)),
    ("bloom poro-chat gpt3-finnish", PreTokenizer((_BLOOM,))),
    ("viking", PreTokenizer((_BLOOM, r"\p{N}"))),
    ("seed-coder", PreTokenizer((f"{_SHORT}|{_LEAD}\\p{{L}}+|\\p{{N}}| ?[^\\s\\p{{L}}\\p{{N}}\\r\\n]+{_SPACE}",))),
    ("ufakzeka", PreTokenizer((_words(r"\p{N}", short=""),))),
    ("superbpe", PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))"))),
)
PRE_TOKENIZERS = {name: kind for names, kind in _KINDS for name in names.split()}
