"""What a request is promised: policies, deadlines, its standing; and how much memory the KV cache has."""

from __future__ import annotations

import pytest
from llm import tiny

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sequence import Sequence

NETWORK = tiny.model("llama", context=256).engine.network


def test_a_deadline_ends_an_answer_with_what_it_has_and_one_that_waits_with_nothing() -> None:
    now = [100.0]
    loop = Loop(NETWORK, 8, max_rows=1, clock=lambda: now[0])
    first, second = Sequence([3, 4], 50, "guaranteed"), Sequence([5], 50)
    loop.open(first, 2.0)
    loop.open(second, 1.0)
    assert loop.next(first) is not None
    assert loop.standing(first)[:2] == ("running", 0) and loop.standing(second)[:2] == ("waiting", 0)
    now[0] += 1.5
    assert loop.standing(second).waited == 1.5
    assert loop.next(second) is None and second.expired
    while loop.next(first) is not None:
        now[0] += 0.2
    assert first.expired and 1 < len(first.answer) < 50
    assert loop.standing(first).state == "ended" and loop.scheduler.blocks.free == 8


def test_a_stream_says_that_its_deadline_came() -> None:
    model = tiny.model("llama", context=256)
    answer = model.stream([1, 2, 3], 60, ignore_eos=True, deadline=1e-9)
    assert list(answer) == [] and answer.finish_reason == "deadline" == answer.completion.finish_reason
    whole = model.stream([1, 2, 3], 4, ignore_eos=True, deadline=1e6, policy="guaranteed")
    assert len(list(whole)) == 4 and whole.finish_reason == "length" and whole.standing.tokens == 4
    assert [c.finish_reason for c in model.generate_batch([[1], [2]], 3, deadline=1e-9)] == ["deadline"] * 2


def test_a_higher_policy_goes_before_a_lower_one() -> None:
    loop = Loop(NETWORK, 8, max_rows=1)
    opened = [Sequence([n], 1, policy) for n, policy in enumerate(("best_effort", "burstable", "guaranteed"), 1)]
    for sequence in opened:
        loop.open(sequence)
    assert [loop.standing(sequence).ahead for sequence in opened] == [2, 1, 0]
    for first, others in ((2, opened), (1, opened[:2]), (0, opened[:1])):
        loop.run_until(lambda others=others: any(sequence.has_news for sequence in others))  # type: ignore[misc]
        assert [sequence.has_news for sequence in others].index(True) == first


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policy": "best"}, "policy='best'"),
        ({"deadline": 0}, "deadline=0"),
        ({"deadline": -1.0}, "deadline=-1"),
    ],
)
def test_terms_that_cannot_be_are_refused_before_anything_waits(settings: dict[str, object], said: str) -> None:
    model = tiny.model("llama", context=64)
    with pytest.raises(InvalidSpecError, match=said):
        model.stream([1], **settings)  # type: ignore[arg-type]
    assert model.engine.occupancy.waiting == 0


def test_the_cache_has_the_blocks_that_its_memory_holds() -> None:
    each = 2 * NETWORK.config.num_layers * NETWORK.config.kv_heads * 64 * NETWORK.config.head_dim * 4
    for memory, blocks in ((5 * each, 5), (5 * each + each - 1, 5), (f"{3 * each}B", 3)):
        model = tiny.model("llama", context=256, kv_memory=memory)
        assert model.engine.occupancy.blocks == blocks
        model.generate([1, 2], 3)
        assert model.cache.count == blocks and model.cache.nbytes == blocks * each
    total = gp.core.device.get_memory_info()[1]
    share = 100 * 7.5 * each / total
    assert tiny.model("llama", context=256, kv_memory=f"{share:.20f}%").engine.occupancy.blocks == 7
    with pytest.raises(InvalidSpecError, match="need 70 positions, and the KV cache has 64"):
        tiny.model("llama", context=256, kv_memory=each).stream([1] * 11, 60)


@pytest.mark.parametrize("memory", ["40 per cent", "0%", "101%", "nan%", "-3%", -1, 1.5, "5"])
def test_a_memory_that_cannot_be_is_refused(memory: object) -> None:
    with pytest.raises(InvalidSpecError, match="kv_memory="):
        tiny.model("llama", context=64, kv_memory=memory)
    with pytest.raises(InvalidSpecError, match="give one"):
        tiny.model("llama", context=64, kv_memory="1GB", slots=2)
