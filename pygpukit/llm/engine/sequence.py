"""Sequence: a request with its tokens, on its way through the loop of a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pygpukit.core.errors import GPUError
from pygpukit.core.ranges import Range
from pygpukit.llm.engine.drafting import Drafting
from pygpukit.llm.engine.request import Request
from pygpukit.llm.engine.sampling import Choice, Sampling

if TYPE_CHECKING:
    from pygpukit.nn.linear.adapters import Adapter


class Constraint(Protocol):
    """The form of an answer: which tokens may come next, or after those ahead, a bit each, or None for all; and the one
    that came, with why the form cannot go on, or ""."""

    def mask(self, ahead: Several[int] = ()) -> bytes | None: ...

    def accept(self, token: int) -> str: ...


class Standing(NamedTuple):
    """The place of a request. state: "waiting" (also when its blocks were taken away), "running" or "ended". ahead:
    requests that begin before it, where it waits. tokens: of the answer, chosen so far. waited: seconds until it began,
    or so far."""

    state: str
    ahead: int
    tokens: int
    waited: float


AHEAD = 8  # tokens that are chosen before they are asked for, when others step: who reads slower stands still


@dataclass(eq=False)
class Sequence(Request):
    """sampling: gets a seed where it has none. end_tokens: those that end it. answer: the tokens chosen so far; ready:
    those that nobody has taken yet. is_over: no more will come. error: why, where a step failed. constraint: the form
    that the answer has. expired: its deadline came first. opened, begun: when it came and when its prompt was begun, by
    the loop's clock. drafting: where drafts of the answer come from. adapter: that its products have. open_range: where
    anybody listens.
    """

    sampling: Sampling = field(default_factory=Sampling)
    end_tokens: frozenset[int] = frozenset()
    answer: list[int] = field(default_factory=list)
    ready: deque[Choice] = field(default_factory=deque)
    is_over: bool = False
    error: BaseException | None = None
    constraint: Constraint | None = None
    expired: bool = False
    opened: float = 0.0
    begun: float | None = None
    drafting: Drafting | None = None
    adapter: Adapter | None = None
    open_range: Range | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampling = self.sampling.seeded()
        self.credit = 1 + AHEAD
        if self.drafting is not None:
            self.drafts = self.drafting.gain.drafts

    def facts(self) -> dict[str, Any]:
        """Facts of the request, for its range."""
        return {
            "client": self.client,
            "policy": self.policy,
            "prompt_tokens": len(self.prompt),
            "reused_tokens": self.reused,
            "answer_tokens": len(self.answer),
            "max_new_tokens": self.max_new_tokens,
            "expired": self.expired,
            "waited_s": None if self.begun is None else self.begun - self.opened,
        }

    @property
    def salt(self) -> bytes:
        """Of its adapter: other keys and values follow from the same tokens."""
        return b"" if self.adapter is None else self.adapter.salt

    @property
    def has_news(self) -> bool:
        """True if there is a token to take, or none will come."""
        return bool(self.ready) or self.is_over

    @property
    def adjusts(self) -> bool:
        """True if its logits are changed before a token is chosen."""
        return self.constraint is not None or self.sampling.adjusts

    @property
    def known(self) -> int:
        """Positions whose token is known."""
        return len(self.prompt) + len(self.answer)

    def token_at(self, position: int) -> int:
        """The token of a position whose token is known."""
        count = len(self.prompt)
        return self.prompt[position] if position < count else self.answer[position - count]

    def deliver(self, choice: Choice) -> None:
        """The next token. Nothing happens where it is over."""
        if self.is_over:
            return
        self.answer.append(choice.token)
        self.ready.append(choice)
        self.is_over = choice.token in self.end_tokens or len(self.answer) == self.max_new_tokens
        if self.constraint is not None and not self.is_over and (why := self.constraint.accept(choice.token)):
            self.error, self.is_over = GPUError(f"the grammar of the answer cannot go on: {why}"), True
