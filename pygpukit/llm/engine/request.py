"""Request: what a client asked of an engine, and how far its scheduler has come with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import factor, whole
from pygpukit.llm.engine.blocks import BlockTable

Policy: TypeAlias = Literal["guaranteed", "burstable", "best_effort"]
POLICIES: tuple[Policy, ...] = get_args(Policy)  # the first goes first


class Terms(NamedTuple):
    """Who asks, with which policy, and the seconds after which the answer is worth nothing."""

    client: str = ""
    policy: Policy = "burstable"
    deadline: float | None = None

    def check(self) -> None:
        """Raises InvalidSpecError for what cannot be."""
        check_policy(self.policy)
        if self.deadline is not None:
            factor(self.deadline, "deadline", positive=True)


def check_policy(policy: str) -> None:
    """Raises InvalidSpecError for one that there is not."""
    if policy not in POLICIES:
        raise InvalidSpecError(f"policy={policy!r}; give one of {', '.join(POLICIES)}", "policy")


@dataclass(eq=False)
class Request:
    """An answer of up to max_new_tokens tokens to a prompt. Raises InvalidSpecError for what cannot be.

    policy: "guaranteed" has its blocks for the whole answer from its beginning on and is never preempted; "burstable"
    goes before "best_effort". client: those of one policy share evenly, whatever each asks for. deadline: the time, of
    the clock that the scheduler is told, at which the answer is worth nothing any more. credit: tokens of the answer
    that may be chosen by now; one that has them stands still, see Scheduler.set_credit(). drafts: tokens that are tried
    behind its next one in a step, at most.

    Of its scheduler: number, in order of arrival. state: "waiting" also when it was preempted. computed: positions
    whose keys are in the cache once the step that was planned last has run. sampled: tokens of the answer that are
    chosen then. preemptions: how often its blocks were taken away. reused: positions of the prompt that were in the
    cache when it began, or began again.
    """

    prompt: Sequence[int]
    max_new_tokens: int
    policy: Policy = "burstable"
    client: str = ""
    deadline: float = math.inf
    credit: int = 2**62
    drafts: int = 0
    number: int = 0
    state: Literal["waiting", "running", "ended"] = "waiting"
    computed: int = 0
    sampled: int = 0
    preemptions: int = 0
    reused: int = 0
    charged: int = 0  # positions that its client has paid for
    table: BlockTable = field(default_factory=BlockTable)
    tier: int = field(init=False)  # the policy's place: 0 goes first

    def __post_init__(self) -> None:
        expected = "a whole number of 1 or more"
        if whole(self.max_new_tokens, "max_new_tokens", expected) < 1:
            raise InvalidSpecError(f"max_new_tokens={self.max_new_tokens}; give {expected}", "max_new_tokens")
        if not self.prompt:
            raise InvalidSpecError("the prompt is empty; a model needs at least one token", "prompt")
        check_policy(self.policy)
        self.tier = POLICIES.index(self.policy)
        if math.isnan(self.deadline):
            raise InvalidSpecError("deadline is no number; give a time, or math.inf for none", "deadline")

    @property
    def salt(self) -> bytes:
        """BlockTable.salt of its table."""
        return b""

    @property
    def length(self) -> int:
        """Tokens of the prompt and those of the answer that are chosen."""
        return len(self.prompt) + self.sampled

    @property
    def positions(self) -> int:
        """Positions of the cache that it needs when it ends; its last token has none."""
        return len(self.prompt) + self.max_new_tokens - 1

    @property
    def is_stalled(self) -> bool:
        """True if nobody wants its next token yet."""
        return self.sampled >= self.credit

    @property
    def rank(self) -> tuple[int, int]:
        """Which of two running requests keeps its blocks: the smaller."""
        return self.tier, self.number
