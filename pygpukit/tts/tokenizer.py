"""KokoroTokenizer: text, phonemes and tokens."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pygpukit.core.backend import frames_inside_package
from pygpukit.tts import phonemes as spoken
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.text import spoken_text
from pygpukit.tts.text.spoken import unread_words
from pygpukit.tts.vocabulary import DEFAULT_VOCAB, PAD


@dataclass
class TokenizerOutput:
    """tokens: without the pads that the model puts around them. phonemes: as they were, unknown ones included."""

    tokens: list[int]
    phonemes: str
    text: str

    def __len__(self) -> int:
        return len(self.tokens)


class KokoroTokenizer:
    """Text to phonemes by an installed library, phonemes to tokens by the vocabulary.

    vocab: token of each symbol, Kokoro-82M's where it is left out. lang: "a" American, "b" British English, None where
    only phonemes are given. use_misaki: whether misaki may be taken where hibari is not installed.
    """

    def __init__(self, vocab: Mapping[str, int] | None = None, lang: str | None = "a", use_misaki: bool = True) -> None:
        self.vocab = dict(vocab or DEFAULT_VOCAB)
        self.lang, self.use_misaki = lang, use_misaki
        self.pad_token, self.pad_id = PAD, 0
        self.id_to_phoneme = {token: symbol for symbol, token in self.vocab.items()}

    @classmethod
    def from_config(cls, config: KokoroConfig, **kwargs: Any) -> KokoroTokenizer:
        """With a configuration's vocabulary."""
        return cls(config.vocab or None, **kwargs)

    def text_to_phonemes(self, text: str) -> str:
        """The phonemes of a text, as spoken_text() has it. Raises InvalidSpecError where no library is installed.

        Words of another script than Latin's, which English does not say, are told in a warning.
        """
        speak, said = spoken.converter(self.lang, self.use_misaki), spoken_text(text, self.lang or "a")
        if unread := unread_words(said):
            some = ", ".join(unread[:3]) + (", ..." if len(unread) > 3 else "")
            warnings.warn(
                f"{some:.80}: words in letters that {spoken.LANGUAGES[self.lang or 'a']} does not have are left out or "
                "spelled; write them in Latin letters, or as [word](/phonemes/)",
                stacklevel=frames_inside_package(),
            )
        return speak(said).strip()

    def phonemes_to_tokens(self, phonemes: str) -> list[int]:
        """The tokens of phonemes; symbols that the vocabulary lacks are left out."""
        return [self.vocab[symbol] for symbol in phonemes if symbol in self.vocab and symbol != self.pad_token]

    def encode(self, text: str) -> TokenizerOutput:
        """Tokens and phonemes of a text."""
        phonemes = self.text_to_phonemes(text)
        return TokenizerOutput(self.phonemes_to_tokens(phonemes), phonemes, text)

    __call__ = encode

    def decode(self, tokens: Sequence[int]) -> str:
        """The phonemes of tokens, without pads. Raises KeyError for a token that stands for nothing."""
        return "".join(self.id_to_phoneme[int(token)] for token in tokens if int(token) != self.pad_id)
