"""Rules and searches over scripted logits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from asr.scripted import FIRST_TIME, Tokens, at

import pygpukit as gp
from pygpukit.asr.choice import Chooser
from pygpukit.asr.rules import Rules
from pygpukit.asr.search import BeamSearch, GreedySearch, Hypothesis, SampledSearch, Search

Array = np.ndarray[Any, Any]
EOT, V = Tokens.eot, Tokens.vocab
PLAIN = Rules(eot=3, no_timestamps=99)


def timed() -> Rules:
    return Rules.of(Tokens(), [4], [5], 50)  # type: ignore[arg-type]


def allowed(said: list[int], logits: Array | None = None) -> set[int]:
    logs = timed().log_probabilities(np.zeros(V, np.float32) if logits is None else logits, said)
    kept = logs[logs > -np.inf]
    assert np.exp(kept.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)
    return set(np.flatnonzero(logs > -np.inf).tolist())


def text(wanted: int, more: float = 12.0) -> Array:
    """Logits by which one token is more probable than all timestamps together."""
    logits = np.zeros(V, np.float32)
    logits[wanted] = more
    return logits


def test_the_first_token_is_an_early_timestamp() -> None:
    assert allowed([]) == set(range(at(0), at(1) + 1))


def test_unwanted_tokens_and_those_that_mean_something_are_never_chosen() -> None:
    kept = allowed([at(0)])
    assert not kept & {4, *Tokens.special, Tokens.no_timestamps}
    plain = Rules.of(Tokens(), [4], [5, EOT], None)  # type: ignore[arg-type]
    logs = plain.log_probabilities(np.zeros(V, np.float32), [])
    assert logs[5] == logs[EOT] == -np.inf < logs[6]
    assert plain.log_probabilities(np.zeros(V, np.float32), [6])[5] > -np.inf


def test_timestamps_come_in_pairs_and_do_not_go_back() -> None:
    assert not allowed([at(0)]) & {4, *Tokens.special, *range(at(0), V)}  # text after the first
    after = allowed([at(0), 1, at(2)], text(EOT))
    assert after == {EOT, *range(at(2), V)}
    assert not allowed([at(0), 1, at(2), at(2.5)]) & set(range(at(0), V))
    assert not allowed([at(0), 1, at(2), at(2.5), 6], text(7)) & set(range(at(0), at(2.5)))


def test_timestamps_that_are_together_more_probable_leave_no_text() -> None:
    assert allowed([at(0), 1]) == set(range(at(0), V))  # all alike: 1501 against one
    assert 7 in allowed([at(0), 1], text(7))


def scripted(search: Search, table: dict[tuple[int, ...], dict[int, float]], vocab: int = 6) -> Hypothesis:
    """Runs a search whose next probabilities depend on what was said."""

    def logits(said: tuple[int, ...]) -> Array:
        row = np.full(vocab, -30, np.float32)
        for token, chance in table.get(said, {3: 1.0}).items():
            row[token] = np.log(chance)
        return row

    rows: list[tuple[int, ...]] = [()]
    found = search.take(logits(())[None])
    while found is not None:
        rows = [(*rows[parent], token) for parent, token in zip(found.parents, found.tokens, strict=True)]
        found = search.take(np.stack([logits(row) for row in rows]))
    return search.best()


GARDEN = {
    (): {0: 0.6, 1: 0.4},
    (0,): {2: 0.4, 4: 0.35, 5: 0.25},
    (1,): {2: 0.95, 4: 0.05},
}  # greedy takes 0, the best is 1 2


def test_greedy_takes_the_first_largest_and_beams_find_better() -> None:
    greedy = scripted(BeamSearch(PLAIN, 1, 10), GARDEN)
    assert greedy.tokens == [0, 2]
    assert greedy.score == pytest.approx(np.log(0.6 * 0.4), abs=1e-4)
    beams = scripted(BeamSearch(PLAIN, 3, 10), GARDEN)
    assert beams.tokens == [1, 2]
    assert beams.average == pytest.approx(np.log(0.4 * 0.95) / 3, abs=1e-4)


def test_wide_beams_find_the_best_of_all() -> None:
    """Against every sequence of up to three tokens."""
    rng = np.random.default_rng(1)
    said = [one for count in range(3) for one in itertools.product((0, 1, 2, 4, 5), repeat=count)]
    table = {}
    for one in said:
        chances = rng.dirichlet(np.ones(6))
        table[one] = dict(enumerate(chances.tolist()))
    scores = {}
    for one in (*said, *itertools.product((0, 1, 2, 4, 5), repeat=3)):
        if not one:
            continue
        score = sum(np.log(table[one[:i]][token]) for i, token in enumerate(one))
        score += np.log(table[one][3]) if len(one) < 3 else 0.0
        scores[one] = score / len(one)
    best = scripted(BeamSearch(PLAIN, 60, 3, patience=3.0), table)
    assert tuple(best.tokens) == max(scores, key=lambda one: scores[one])


def test_a_search_ends_at_its_length_whatever_comes() -> None:
    for search in (BeamSearch(PLAIN, 2, 7), SampledSearch(PLAIN, 2, 7, 1.0, 5)):
        steps, found = 1, search.take(text_of(0)[None])
        while found is not None:
            assert len(found.tokens) == len(found.parents) <= 2
            steps, found = steps + 1, search.take(np.stack([text_of(0)] * len(found.tokens)))
        assert steps == 7
        assert search.best().tokens == [0] * 7


def text_of(token: int) -> Array:
    row = np.full(6, -40, np.float32)
    row[token] = 0
    return row


def test_logits_that_are_no_numbers_end_a_search_without_tokens() -> None:
    search = BeamSearch(PLAIN, 2, 7)
    assert search.take(np.full((1, 6), np.nan, np.float32)) is None
    assert search.best().tokens == []


def test_samples_follow_their_seed_and_their_probabilities() -> None:
    one = scripted(SampledSearch(PLAIN, 5, 10, 0.7, 11), GARDEN)
    assert scripted(SampledSearch(PLAIN, 5, 10, 0.7, 11), GARDEN) == one
    first = [scripted(SampledSearch(PLAIN, 1, 10, 1.0, seed), GARDEN).tokens[0] for seed in range(300)]
    assert 0.5 < first.count(0) / 300 < 0.7


def test_greedy_is_a_beam_of_one() -> None:
    rng = np.random.default_rng()
    for rules in [timed(), Rules.of(Tokens(), [4], [5, EOT], None)] * 20:  # type: ignore[arg-type]
        searches: list[Search] = [GreedySearch(rules, 12), BeamSearch(rules, 1, 12)]
        going, logits = True, np.zeros((1, V), np.float32)
        while going:
            logits = rng.normal(0, 4, (1, V)).astype(np.float32)
            logits[0, :FIRST_TIME] += rng.choice([0, 9])
            found = [one.take(logits) for one in searches]
            assert found[0] == found[1]
            going = found[0] is not None
        assert searches[0].best() == searches[1].best()
    nothing = GreedySearch(PLAIN, 3)
    assert nothing.take(np.full((1, 100), np.nan, np.float32)) is None
    assert nothing.best() == Hypothesis([], float("-inf"))


def test_chosen_on_the_device_is_the_most_probable_that_may_come() -> None:
    rng, rules = np.random.default_rng(), timed()
    chooser = Chooser(rules, V)
    said = [[], [at(0)], [at(0), 1], [at(0), 1, at(2)], [at(0), 1, at(2), at(2)]]
    for _ in range(10):
        logits = rng.normal(0, 3, (5, V)).astype(np.float32)
        order = rng.permutation(5).tolist()
        found = chooser(gp.from_numpy(logits), order, [said[row] for row in order])
        for row, (token, log) in zip(order, found, strict=True):
            logs = rules.log_probabilities(logits[row], said[row])
            assert token == logs.argmax() and log == pytest.approx(logs.max(), abs=1e-5)
