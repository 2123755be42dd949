"""Message: one thing said in a conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pygpukit.core.markdown import inert
from pygpukit.core.text import visible
from pygpukit.llm.generation import Figures, Token

Role: TypeAlias = Literal["user", "assistant", "system"]
_WHO = {"user": "You", "assistant": "Model", "system": "System"}
# What begins with one of these is only what it is at the beginning of a line.
_AT_MARGIN = re.compile(r"\s*(?:```|~~~|[-*+#>|]|\d+[.)]|\$\$|\\\[|<pre>)")


@dataclass(eq=False)
class Message:
    """One message. number: its place in the order of making; parent: the number of the message that it follows.

    Of an answer: tokens (with their probabilities), finish_reason ("stop", "length", "cancelled", "failed", or None
    while it comes), figures, and error, the sentence why it failed. first: where the context is full, the number of the
    oldest message that the model got; note: the sentence that says so. stage: what is done until its first token.
    question: what it answers.
    """

    number: int
    role: Role
    parent: int | None
    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    finish_reason: str | None = None
    figures: Figures | None = None
    error: str = ""
    first: int | None = None
    note: str = ""
    stage: str = ""
    question: str = ""

    @property
    def content(self) -> str:
        """The text, without thinking."""
        return self.text + "".join(token.text for token in self.tokens)

    @property
    def thinking(self) -> str:
        """The text that the model thought before it answered; "" where it does not think."""
        return "".join(token.thinking for token in self.tokens)

    @property
    def ended(self) -> str:
        """Why it ended otherwise than by itself, as a sentence; else ""."""
        if self.finish_reason == "cancelled":
            return "Stopped."
        if self.finish_reason != "length":
            return ""
        figures = self.figures
        if figures is not None and figures.context_used >= figures.context:
            return f"Cut where the context of {figures.context} tokens ended."
        return "Cut at its greatest length."

    def markdown(self) -> str:
        """Who said it, and what. What was said can do nothing in it, whoever draws it."""
        said = inert(self.content.strip()) or (f"*{inert(self.error)}*" if self.error else "*nothing*")
        if self.role == "system" and "\n" not in said:
            return f"*System: {said}*"
        note = f"*{self.note}*\n\n" if self.note else ""
        between = "\n\n" if _AT_MARGIN.match(said) else " "
        return f"{note}**{_WHO[self.role]}:**{between}{said}"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def __repr__(self) -> str:
        return f"{self.role}: {visible(self.content)}"

    def __str__(self) -> str:
        return self.content
