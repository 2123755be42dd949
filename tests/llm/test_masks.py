"""Masks of grammars, a bit each token: the same answers as by a bias of -inf, in any batch and with drafts."""

from __future__ import annotations

import random
from collections.abc import Sequence as Several
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from llm import guessing, tiny

import pygpukit as gp
from pygpukit._core import native
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.masks import TokenMasks
from pygpukit.llm.engine.sampling import Choice, Sampler, Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.nn.batch import new_batch
from pygpukit.nn.transformer import Transformer

VOCABULARIES = (1, 31, 32, 33, 299, 1500)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0, "seed": 3},
    {"temperature": 1.4, "top_k": 20, "seed": 5, "repetition_penalty": 1.3, "logit_bias": {4: 2.0}},
    {"temperature": 0.9, "top_p": 0.9, "seed": 7, "frequency_penalty": 0.3},
]


def packed(allowed: np.ndarray) -> bytes:
    return np.packbits(allowed, bitorder="little").tobytes()


class Played:
    """A form whose next tokens follow from those that came, by chance: some of all, one, or (None) any."""

    def __init__(self, seed: int, vocab: int) -> None:
        self._seed, self._vocab = seed, vocab
        self.came: list[int] = []

    def allowed(self, ahead: Several[int] = ()) -> np.ndarray | None:
        own = random.Random(hash((self._seed, *self.came, *ahead)))
        share = own.choice((0.02, 0.5, 0.9, None))
        if share is None:
            return None
        numbers = np.random.default_rng(own.getrandbits(32))
        found = numbers.random(self._vocab) < share
        found[numbers.integers(self._vocab)] = True
        return found

    def mask(self, ahead: Several[int] = ()) -> bytes | None:
        allowed = self.allowed(ahead)
        return None if allowed is None else packed(allowed)

    def accept(self, token: int) -> str:
        allowed = self.allowed()
        assert allowed is None or allowed[token]
        self.came.append(token)
        return ""


@pytest.mark.parametrize("vocab", VOCABULARIES)
def test_the_device_has_a_bit_of_each_token_and_is_sent_what_changed(
    vocab: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, rows = np.random.default_rng(), 7
    masks, expected = TokenMasks(rows, vocab), np.ones((rows, vocab), bool)
    assert masks.words.shape == (rows, -(-vocab // 32)) and masks.words.dtype.name == "uint32"
    sent: list[int] = []
    copy = native.copy_from_host

    def counted(target: Any, source: Any) -> None:
        sent.append(source.nbytes)
        copy(target, source)

    monkeypatch.setattr(native, "copy_from_host", counted)
    for _ in range(20):
        chosen = sorted(own.permutation(rows)[: own.integers(1, rows)].tolist())
        new = {row: None if own.random() < 0.3 else own.random(vocab) < 0.5 for row in chosen}
        masks.put({row: None if allowed is None else packed(allowed) for row, allowed in new.items()})
        for row, allowed in new.items():
            expected[row] = True if allowed is None else allowed
        for row in range(rows):
            np.testing.assert_array_equal(masks.allowed(row, vocab), expected[row])
        assert sum(sent) <= (chosen[-1] - chosen[0] + 1) * masks.words.nbytes // rows and len(sent) <= 1
        sent.clear()
        masks.put({row: None if allowed is None else packed(allowed) for row, allowed in new.items()})
        assert not sent  # the device has them
    masks.put({2: b"\x01"})  # nothing behind the end of a mask
    assert masks.allowed(2, vocab).tolist() == [True, *[False] * (vocab - 1)]


@pytest.mark.parametrize("computes", ["kernels", "numpy"])
def test_logits_and_tokens_are_those_of_a_bias(computes: str, request: pytest.FixtureRequest) -> None:
    own = np.random.default_rng()
    vocabularies, settings, told = VOCABULARIES, SETTINGS, 2
    if computes == "kernels":  # a choice by chance costs the simulator seconds; what masks change comes before it
        request.getfixturevalue("kernels_on_sim")
        vocabularies, settings, told = (1, 33, 299), [{}, {"repetition_penalty": 1.3, "presence_penalty": 0.2}], 0
    rows = len(settings)
    for vocab in vocabularies:
        logits = gp.from_numpy((own.standard_normal((rows, vocab)) * 4).astype(np.float32))
        allowed = own.random((rows, vocab)) < 0.4
        allowed[np.arange(rows), own.integers(vocab, size=rows)] = True
        found = []
        for by_mask in (True, False):
            sampler, batch = Sampler(rows, vocab, True, told), new_batch(rows)
            for row, more in enumerate(settings):
                never = {} if by_mask else {int(token): -np.inf for token in np.flatnonzero(~allowed[row])}
                sampler.load(row, replace(Sampling(**more), logit_bias=never), [0], [vocab - 1])
            assert sampler.masks is not None
            sampler.masks.put({row: packed(allowed[row]) if by_mask else None for row in range(rows)})
            sampler.logits[...] = logits
            batch.tokens[...] = -1
            sampler.choose(batch)
            choices = sampler.read(batch, [min(vocab, told) or None] * rows)
            found.append((choices, sampler.logits.to_numpy().tobytes()))
            assert all(allowed[row, choice.token] for row, choice in enumerate(choices))
        assert found[0] == found[1], vocab


def _sequence(number: int, network: Transformer, restricted: bool) -> Sequence:
    vocab, settings = network.config.vocab_size, SETTINGS[number % len(SETTINGS)]
    prompt = [(7 * number + k) % vocab for k in range(3 + 30 * number)]
    form = Played(number, vocab) if restricted else None
    return Sequence(prompt, 12, sampling=Sampling(top=2, **settings), constraint=form)


def _by_bias(number: int, network: Transformer) -> list[Choice]:
    """The answer alone, with a bias for each token in place of the mask."""
    loop, sequence = Loop(network, 20, max_rows=1), _sequence(number, network, False)
    sampling, form, found = sequence.sampling, Played(number, network.config.vocab_size), []
    loop.open(sequence)
    while not sequence.is_over:
        allowed = form.allowed()
        never = {} if allowed is None else {int(token): -np.inf for token in np.flatnonzero(~allowed)}
        sequence.sampling = replace(sampling, logit_bias={**sampling.logit_bias, 0: 0.0, **never})  # a step with biases
        loop.steps.forget()  # so that it is loaded again
        choice = loop.next(sequence)
        assert choice is not None
        form.accept(choice.token)
        found.append(choice)
    return found


@pytest.mark.parametrize("vocab", [96, 97, 130])
def test_answers_are_those_of_a_bias_beside_free_ones_and_with_drafts(vocab: int) -> None:
    network = tiny.model("llama", vocab_size=vocab, context=256).engine.network
    restricted = (True, False, True, True, False, True)
    alone: list[list[Choice]] = []
    for number, is_restricted in enumerate(restricted):
        free = [_sequence(number, network, False)]
        alone.append(_by_bias(number, network) if is_restricted else _said(Loop(network, 20), free)[0])
    for acceptance in (None, 0.0, 0.7, 1.0):
        opened = [_sequence(number, network, is_restricted) for number, is_restricted in enumerate(restricted)]
        for sequence, answer in zip(opened, alone, strict=True):
            if acceptance is not None:
                tokens = [choice.token for choice in answer]
                sequence.drafting = guessing.drafting(tokens, acceptance, count=3, vocabulary=vocab)
                sequence.drafts = 3
        assert _said(Loop(network, 30, max_rows=8), opened) == alone, acceptance


def _said(loop: Loop, opened: list[Sequence]) -> list[list[Choice]]:
    for sequence in opened:
        loop.open(sequence)
    found: list[list[Choice]] = [[] for _ in opened]
    while not all(sequence.is_over and not sequence.ready for sequence in opened):
        for sequence, own in zip(opened, found, strict=True):
            if (choice := loop.next(sequence)) is not None:
                own.append(choice)
    return found
