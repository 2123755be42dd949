"""Speculation: the setting `speculate=` of a request, and the drafts of one sequence by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.ngram import NGrams
from pygpukit.llm.engine.drafting import Drafting
from pygpukit.llm.engine.gain import Gain

Method: TypeAlias = Literal["ngram"]
METHODS: tuple[str, ...] = get_args(Method)
MAX_TOKENS = 16


@dataclass(frozen=True)
class Speculation:
    """Where drafts of an answer come from, for `speculate=` of generate(), stream(), chat() and generate_batch().

    The model computes several drafts in one step and keeps those that it would have chosen itself: tokens, logprobs and
    their bits are those of an answer without. Drafts that cost more than they give are left out for a while.

    Parameters
    ----------
    method : str
        "ngram": what came last after the tokens that prompt and answer end with.
    tokens : int
        Drafts of a step, 1 to 16.
    always : bool
        Whether drafts are tried even while they do not pay.

    Raises
    ------
    InvalidSpecError
        For another method, or another number of tokens.

    Examples
    --------
    >>> import pygpukit as gp
    >>> gp.llm.Speculation("ngram", tokens=6)
    Speculation(method='ngram', tokens=6, always=False)
    """

    method: Method = "ngram"
    tokens: int = 4
    always: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidSpecError(f"method={self.method!r}; give one of {', '.join(METHODS)}", "method")
        expected = f"a whole number of 1 to {MAX_TOKENS}"
        if not 1 <= whole(self.tokens, "tokens", expected) <= MAX_TOKENS:
            raise InvalidSpecError(f"tokens={self.tokens!r}; give {expected}", "tokens")
        if self.always not in (True, False):
            raise InvalidSpecError(f"always={self.always!r}; give True or False", "always")


def speculation(value: object) -> Speculation | None:
    """The setting that `speculate=` is. Raises InvalidSpecError for what it cannot be."""
    if value is None or isinstance(value, Speculation):
        return value
    if isinstance(value, str) and value in METHODS:
        return Speculation(value)  # type: ignore[arg-type]
    names = ", ".join(map(repr, METHODS))
    raise InvalidSpecError(f"speculate={value!r:.80}; give one of {names}, or a gp.llm.Speculation", "speculate")


def drafting(setting: Speculation | None) -> Drafting | None:
    """The drafts of one sequence."""
    return None if setting is None else Drafting(NGrams(), Gain(setting.tokens, setting.always))
