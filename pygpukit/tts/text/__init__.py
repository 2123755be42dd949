"""Text before it becomes phonemes: cleaned, cut into sentences, and written as it is spoken."""

from pygpukit.tts.text.cleaning import normalize_text
from pygpukit.tts.text.sentences import cut, split_sentences
from pygpukit.tts.text.spoken import spoken_text

__all__ = ["cut", "normalize_text", "split_sentences", "spoken_text"]
