"""The search for a window's tokens: the best by beams, or samples. It is given logits and says what to compute next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pygpukit.asr.rules import Rules
from pygpukit.ops.nn import sampling

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Hypothesis:
    """Tokens without the one that ends them. score: the sum of the logs of all their probabilities."""

    tokens: list[int]
    score: float

    @property
    def average(self) -> float:
        """The mean log of a token's probability, the end counted."""
        return self.score / (len(self.tokens) + 1)


@dataclass(frozen=True)
class Next:
    """The rows that a search goes on with: for each new row the row that it continues, and its token."""

    parents: list[int]
    tokens: list[int]


class Search(Protocol):
    """rows: how many sequences it has at most."""

    rows: int

    def take(self, logits: Array) -> Next | None:
        """Logits (rows, vocabulary) after the last tokens; at first one row, after the prompt. None at the end."""
        ...

    def best(self) -> Hypothesis:
        """The best hypothesis."""
        ...


class GreedySearch:
    """The most probable token at each step, until the one that ends. As BeamSearch with one row, but it can be told the
    token instead of the logits."""

    rows = 1

    def __init__(self, rules: Rules, max_tokens: int) -> None:
        self._rules, self._max_tokens = rules, max_tokens
        self.said: list[int] = []
        self._best = Hypothesis([], float("-inf"))
        self._score = 0.0

    def take(self, logits: Array) -> Next | None:
        return self.chosen(*self._rules.most_probable(logits[0], self.said))

    def chosen(self, token: int, log: float) -> Next | None:
        """Goes on with this token. log: of its probability, -inf where none was possible."""
        import numpy as np

        if log == -np.inf:
            return None
        self._score = float(np.float32(log) + np.float32(self._score))
        if token != self._rules.eot:
            self.said.append(token)
        if token == self._rules.eot or len(self.said) >= self._max_tokens:
            self._best = Hypothesis(self.said, self._score)
            return None
        return Next([0], [token])

    def best(self) -> Hypothesis:
        return self._best


class BeamSearch:
    """The `rows` most probable sequences at each step; ends when as many as rows * patience have ended.

    With one row it is greedy. Found is the one with the largest mean log probability of its tokens.
    """

    def __init__(self, rules: Rules, rows: int, max_tokens: int, patience: float = 1.0) -> None:
        self.rows, self._rules, self._max_tokens = rows, rules, max_tokens
        self._min_ended = max(1, round(rows * patience))
        self._beams: list[Hypothesis] = [Hypothesis([], 0.0)]
        self._ended: list[Hypothesis] = []

    def take(self, logits: Array) -> Next | None:
        import numpy as np

        scores = np.stack(
            [
                self._rules.log_probabilities(row, beam.tokens) + np.float32(beam.score)
                for row, beam in zip(logits, self._beams, strict=True)
            ]
        )
        candidates = _largest(scores, 2 * self.rows)
        last = len(self._beams[0].tokens) + 1 >= self._max_tokens
        spare = [entry for entry in candidates[self.rows :] if entry[1] != self._rules.eot]
        going = []
        for candidate in candidates[: self.rows]:
            row, token, score = candidate
            if token == self._rules.eot or last:
                said = [] if token == self._rules.eot else [token]
                self._ended.append(Hypothesis(self._beams[row].tokens + said, score))
                if not spare:
                    continue
                candidate = spare.pop(0)
            going.append(candidate)
        if last or len(self._ended) >= self._min_ended or not going:
            return None
        self._beams = [Hypothesis([*self._beams[row].tokens, token], score) for row, token, score in going]
        return Next([row for row, *_ in going], [token for _, token, _ in going])

    def best(self) -> Hypothesis:
        return _best(self._ended)


class SampledSearch:
    """Several sequences drawn at a temperature; found is the one with the largest mean log probability.

    Random numbers are Philox's by seed, place in the sequence and row: the same seed gives the same tokens.
    """

    def __init__(self, rules: Rules, rows: int, max_tokens: int, temperature: float, seed: int) -> None:
        self.rows, self._rules, self._max_tokens = rows, rules, max_tokens
        self._temperature, self._seed = temperature, seed
        self._going = [(number, Hypothesis([], 0.0)) for number in range(rows)]
        self._ended: list[Hypothesis] = []

    def take(self, logits: Array) -> Next | None:
        going, parents = [], []
        for row, (number, beam) in enumerate(self._going):
            at = row if logits.shape[0] == len(self._going) else 0
            logs = self._rules.log_probabilities(logits[at], beam.tokens)
            bits = sampling.random_bits(self._seed, len(beam.tokens), number)
            token = sampling.choice_on_host(logs, self._temperature, 0, 0, float("-inf"), bits)
            ends = token == self._rules.eot
            hypothesis = Hypothesis(beam.tokens if ends else [*beam.tokens, token], beam.score + float(logs[token]))
            if ends or len(hypothesis.tokens) >= self._max_tokens:
                self._ended.append(hypothesis)
                continue
            going.append((number, hypothesis))
            parents.append(at)
        self._going = going
        return Next(parents, [beam.tokens[-1] for _, beam in going]) if going else None

    def best(self) -> Hypothesis:
        return _best(self._ended)


def _largest(scores: Array, count: int) -> list[tuple[int, int, float]]:
    """(row, token, score) of the largest, the largest first, of equal ones the first; never one of -inf."""
    import numpy as np

    flat = scores.reshape(-1)
    count = min(count, flat.size)
    threshold = np.partition(flat, flat.size - count)[flat.size - count]
    places = np.flatnonzero(flat >= threshold)
    places = places[np.lexsort((places, -flat[places]))][:count]
    places = places[flat[places] > -np.inf]
    return [(int(place) // scores.shape[1], int(place) % scores.shape[1], float(flat[place])) for place in places]


def _best(hypotheses: list[Hypothesis]) -> Hypothesis:
    """Without tokens it is the last choice; logits that are no numbers give none at all."""
    nothing = Hypothesis([], float("-inf"))
    return max(
        hypotheses,
        key=lambda hypothesis: hypothesis.score / len(hypothesis.tokens) if hypothesis.tokens else float("-inf"),
        default=nothing,
    )
