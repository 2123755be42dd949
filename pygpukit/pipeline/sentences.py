"""SentenceBuffer: text that comes in pieces, given back in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from pygpukit.tts.text import cut


@dataclass
class SentenceBuffer:
    """Text that was not given back yet is in text. Sentences end as split_sentences() of speech synthesis has them."""

    text: str = ""

    def append(self, text: str) -> None:
        """Add a piece of any length."""
        self.text += text

    def extract_sentences(self) -> list[str]:
        """The sentences that have ended; they are taken out. One has when the next has begun: "3." may become "3.5"."""
        parts = cut(self.text)
        left = parts.pop()
        if not left.strip() and parts:
            left = parts.pop() + left
        self.text = left
        return [part.strip() for part in parts if part.strip()]

    def flush(self) -> str | None:
        """The rest as the last sentence; None where there is none."""
        rest, self.text = self.text.strip(), ""
        return rest or None

    def clear(self) -> None:
        """Forget what is there."""
        self.text = ""
