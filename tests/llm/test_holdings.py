"""Blocks by sequence: who has how many, what is shared, and what a page shows of it."""

from __future__ import annotations

import gc
from typing import Any

from llm import tiny

from pygpukit.llm.engine import holdings
from pygpukit.llm.engine.holdings import Holding
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.telemetry.feed import Feed


def own_rows(rows: list[dict[str, Any]], name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:] for row in rows if row["cache"] == name]


def test_blocks_by_sequence_and_what_prefixes_share() -> None:
    loop = Loop(tiny.model("llama", context=256).engine.network, 9, max_rows=4, budget=300, name="holdings")
    assert loop.holdings() == [Holding("earlier prompts", 0, 0), Holding("free", 9, 0)]
    prompt = [int(x) % 90 for x in range(7, 170)]  # two whole blocks and a part
    first, second = Sequence(prompt, 9, client="ann"), Sequence([*prompt[:128], 5], 9)
    for sequence in (first, second):
        loop.open(sequence)
        assert loop.next(sequence) is not None
    assert loop.holdings() == [
        Holding(f"ann {first.number}", 3, 2),
        Holding(f"answer {second.number}", 3, 2),
        Holding("earlier prompts", 0, 0),
        Holding("free", 5, 0),
    ]
    each = loop.cache.nbytes // 9
    found = own_rows(holdings.rows(), "holdings")
    assert found[0] == (f"ann {first.number}", 3, 2, 3 * each) and sum(row[3] for row in found) == 10 * each + each
    loop.close(second)
    assert loop.holdings()[0] == Holding(f"ann {first.number}", 3, 0)
    loop.close(first)
    assert loop.holdings()[:-1] == [Holding("earlier prompts", 3, 0)]
    loop.clear()
    assert loop.holdings()[-1] == Holding("free", 9, 0)


def test_a_page_is_told_when_something_changed_and_forgets_what_is_gone() -> None:
    loop = Loop(tiny.model("llama", context=256).engine.network, 4, max_rows=4, budget=300, name="told")
    feed = Feed("test")
    messages, *_ = feed.begin()
    (told,) = [content for content, _ in messages if content["type"] == "caches"]
    assert own_rows(told["rows"], "told")[-1][:2] == ("free", 4)
    feed._contexts_due = 0.0
    assert not [content for content, _ in feed._beside() if content["type"] == "caches"], "nothing is new"
    loop.open(sequence := Sequence([1, 2], 3))
    loop.next(sequence)
    feed._contexts_due = 0.0
    (told,) = [content for content, _ in feed._beside() if content["type"] == "caches"]
    assert own_rows(told["rows"], "told")[0][:3] == (f"answer {sequence.number}", 1, 0)
    del loop, sequence
    gc.collect()
    assert not own_rows(holdings.rows(), "told")
