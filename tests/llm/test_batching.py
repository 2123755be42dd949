"""Rules of continuous batching: who runs, who waits, who gives way, and what a step computes."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.llm.engine import blocks
from pygpukit.llm.engine.blocks import BlockManager
from pygpukit.llm.engine.request import Request
from pygpukit.llm.engine.scheduler import Plan, Scheduler


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of any size."""
    monkeypatch.setattr(blocks, "MIN_SIZE", 1)


class AtOnce(Scheduler):
    """Whose passes over prompts are launched whole."""

    def plan(self, now: float = 0.0) -> Plan:
        plan = super().plan(now)
        if self.passing:
            self.passed()
        return plan._replace(parted=False)


def scheduler(count: int = 100, size: int = 4, **settings: int) -> Scheduler:
    return AtOnce(BlockManager(count, size), **settings)


def steps(tested: Scheduler, most: int = 1000) -> list[Plan]:
    """Plans until nothing is left to do."""
    plans = []
    while tested.running or tested.waiting:
        plans.append(tested.plan())
        assert len(plans) < most
    return plans


def submitted(tested: Scheduler, *arguments: object, **settings: object) -> Request:
    request = Request(*arguments, **settings)  # type: ignore[arg-type]
    tested.submit(request)
    return request


def test_a_step_takes_all_rows_and_a_part_of_a_prompt() -> None:
    tested = scheduler(max_rows=8, budget=10)
    first = [submitted(tested, [n], 20) for n in range(3)]
    plan = tested.plan()
    assert [(chunk.request, chunk.end, chunk.samples) for chunk in plan.chunks] == [(r, 1, True) for r in first]
    late = submitted(tested, list(range(20)), 2)
    parts = []
    for _ in range(3):
        plan = tested.plan()
        assert [row.request for row in plan.rows] == first
        parts += [(chunk.request, chunk.start, chunk.end, chunk.samples) for chunk in plan.chunks]
    assert parts == [(late, 0, 7, False), (late, 7, 14, False), (late, 14, 20, True)]
    assert [row.request for row in tested.plan().rows] == [*first, late] and late.state == "ended"


def test_a_prompt_that_was_here_before_is_not_computed_again() -> None:
    tested, prompt = scheduler(max_rows=2, budget=100), list(range(10))
    submitted(tested, prompt, 1)
    assert [(c.start, c.end) for plan in steps(tested) for c in plan.chunks] == [(0, 10)]
    again = submitted(tested, [*prompt, 99], 1)
    assert [(c.start, c.end) for plan in steps(tested) for c in plan.chunks] == [(10, 11)] and again.reused == 10


def test_what_is_preempted_is_computed_again_as_it_was_first() -> None:
    tested = scheduler(max_rows=2, budget=10)
    request = submitted(tested, [1, 2, 3], 5)
    for _ in range(3):
        tested.plan()
    assert (request.computed, request.sampled) == (5, 3)
    tested._preempt(request, [])
    assert tested.blocks.free == 100 and request.table.blocks == []
    plans = steps(tested)
    assert [(c.start, c.end, c.samples) for plan in plans for c in plan.chunks] == [(2, 3, False)]
    rows = [(row.position, row.samples) for plan in plans for row in plan.rows]
    assert rows == [(3, False), (4, False), (5, True), (6, True)]
    assert request.preemptions == 1


def test_one_who_leaves_frees_the_blocks_at_once_running_or_waiting() -> None:
    tested = scheduler(10, max_rows=1, budget=40)
    running, waiting = submitted(tested, list(range(30)), 5), submitted(tested, [1], 5)
    tested.plan()
    assert (running.state, waiting.state, tested.blocks.free) == ("running", "waiting", 2)
    tested.end(waiting)
    tested.end(running)
    tested.end(running)
    assert tested.blocks.free == 10 and tested.plan() == Plan([], [], [], [], [])


def test_too_many_who_wait_are_refused_and_those_who_were_preempted_never() -> None:
    tested = scheduler(max_rows=1, budget=10, max_waiting=2)
    running = submitted(tested, [1], 9)
    tested.plan()
    submitted(tested, [2], 9)
    tested._preempt(running, [])
    submitted(tested, [3], 9)
    with pytest.raises(TaskRejectedError, match="2 requests wait already") as raised:
        submitted(tested, [4], 9)
    assert (raised.value.reason, raised.value.detail) == ("QueueFull", {"waiting": 2, "limit": 2})
    assert len(tested.waiting) == 3
    steps(tested)
    assert running.state == "ended" and running.sampled == 9


def test_what_never_fits_is_refused() -> None:
    tested = scheduler(3, max_rows=1, budget=10)
    submitted(tested, list(range(8)), 5)  # twelve positions: the last token needs none
    with pytest.raises(InvalidSpecError, match="need 13 positions, and the KV cache has 12"):
        submitted(tested, list(range(8)), 6)


def test_a_guaranteed_request_takes_the_place_of_the_newest_best_effort_and_is_never_preempted() -> None:
    tested = scheduler(11, max_rows=3, budget=20)
    low = [submitted(tested, [n] * 4, 12, "best_effort") for n in range(3)]
    tested.plan()
    first = submitted(tested, [9] * 10, 20, "guaranteed")  # eight blocks, kept for it from now on
    plan = tested.plan()
    assert plan.preempted == [low[2], low[1]] and len(first.table.blocks) == 8
    order = {request: number for number, p in enumerate(steps(tested)) for request in _sampling(p)}
    assert first.preemptions == 0 and all(request.sampled == 12 for request in low)
    assert max(order, key=lambda request: order[request]) is not first


def test_a_request_that_waits_for_room_keeps_out_who_came_later_but_not_who_would_give_way() -> None:
    tested = scheduler(10, max_rows=8, budget=100)
    submitted(tested, [1] * 16, 5, "guaranteed")  # five blocks
    tested.plan()
    large = submitted(tested, [2] * 20, 5, "guaranteed")  # six
    small = submitted(tested, [3] * 4, 1, "guaranteed")
    low = submitted(tested, [4] * 4, 9, "best_effort")
    tested.plan()
    assert (large.state, small.state, low.state) == ("waiting", "waiting", "running")
    assert (tested.queue_position(large), tested.queue_position(small)) == (0, 1)
    steps(tested)


def test_sequences_that_share_their_beginning_give_way_together() -> None:
    tested, prompt = scheduler(10, max_rows=8, budget=100), [1] * 24
    submitted(tested, prompt, 1)
    steps(tested)
    low = [submitted(tested, prompt, 9, "best_effort") for _ in range(3)]
    tested.plan()
    assert tested.blocks.shared == 5
    high = submitted(tested, [2] * 30, 9, "guaranteed")
    assert set(tested.plan().preempted) == set(low) and high.state == "running"
    steps(tested)


def test_a_client_with_one_request_does_not_wait_behind_anothers_hundred() -> None:
    tested = scheduler(1000, max_rows=2, budget=50)
    storm = [submitted(tested, [1], 50, client="storm") for _ in range(100)]
    for _ in range(3):
        tested.plan()
    lone = submitted(tested, [2], 20, client="lone")
    plan = tested.plan()
    assert plan.preempted == [storm[1]] and lone.state == "running"  # two of one client beside none of the other
    assert storm[0].state == "running"
    while lone.state != "ended":
        tested.plan()
    assert sum(request.preemptions for request in storm) == 1


def test_a_client_that_was_served_more_has_its_turn_while_the_others_answers_go_on() -> None:
    tested = scheduler(1000, max_rows=2, budget=50)
    first = [submitted(tested, [1], 20, "guaranteed", client="mine") for _ in range(2)]
    mine = submitted(tested, [1], 30, client="mine")
    others = [submitted(tested, [1], 500, client="other") for _ in range(3)]
    while first[0].state != "ended":
        tested.plan()
    tested.plan()
    assert tested.running == others[:2]
    for _ in range(80):
        tested.plan()
    assert mine.state == "ended" and mine.sampled == 30
    assert others[0].preemptions == 0


def test_clients_get_equal_numbers_of_tokens_however_long_their_answers() -> None:
    tested = scheduler(1000, max_rows=1, budget=50)
    for _ in range(40):
        submitted(tested, [1], 30, client="long")
        submitted(tested, [1], 3, client="short")
    tokens = Counter[str]()
    for _ in range(200):
        tokens.update(request.client for request in _sampling(tested.plan()))
    assert sum(tokens.values()) == 200 and abs(tokens["long"] - tokens["short"]) <= 60
    assert sum(not r.sampled for r in tested.waiting if r.client == "short") < 15


def test_who_was_away_has_saved_up_nothing() -> None:
    tested = scheduler(1000, max_rows=1, budget=50)
    for _ in range(10):
        submitted(tested, [1], 20, client="busy")
    for _ in range(100):
        tested.plan()
    for _ in range(10):
        submitted(tested, [1], 20, client="new")
    tokens = Counter[str]()
    for _ in range(80):
        tokens.update(request.client for request in _sampling(tested.plan()))
    assert abs(tokens["busy"] - tokens["new"]) <= 40


def test_a_request_ends_at_its_deadline_and_the_earlier_goes_first() -> None:
    tested = scheduler(max_rows=1, budget=10)
    late, early = submitted(tested, [1], 50, deadline=30.0), submitted(tested, [1], 5, deadline=20.0)
    assert tested.plan(1.0).chunks[0].request is early
    for now in range(2, 8):
        tested.plan(float(now))
    assert early.state == "ended" and early.sampled == 5
    assert tested.plan(29.5).rows[0].request is late
    plan = tested.plan(30.0)
    assert plan.expired == [late] and not plan.rows and tested.blocks.free == 100 and late.sampled < 50


def test_one_whose_tokens_nobody_takes_stands_still_and_gives_way_to_who_is_waited_for() -> None:
    tested = scheduler(1000, max_rows=1, budget=10)
    read = submitted(tested, [1], 9, credit=3)
    other = submitted(tested, [2], 5)
    assert [bool(tested.plan().chunks), *(bool(tested.plan().rows) for _ in range(2))] == [True] * 3
    plans = [tested.plan() for _ in range(7)]
    assert read.state == "waiting" and read.sampled == 3 and other.state == "ended"
    assert sum(len(plan.preempted) for plan in plans) == 1
    tested.set_credit(read, 4)
    assert [(c.request, c.samples) for c in tested.plan().chunks] == [(read, False)]
    while not read.is_stalled:
        tested.plan()
    assert read.sampled == 4 and not tested.plan().rows
    tested.set_credit(read, 9)
    steps(tested)
    assert read.sampled == 9


@pytest.mark.parametrize(
    "settings", [{"max_rows": 0}, {"max_rows": 4, "budget": 4}, {"budget": 1}, {"max_waiting": -1}, {"max_rows": True}]
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(InvalidSpecError, match=list(settings)[-1] + "="):
        scheduler(**settings)


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"prompt": []}, "prompt"), ({"max_new_tokens": 0}, "max_new_tokens"), ({"policy": "royal"}, "policy")]
    + [({"deadline": math.nan}, "deadline")],
)
def test_requests_that_cannot_be_are_refused(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        Request(**{"prompt": [1], "max_new_tokens": 1, **settings})  # type: ignore[arg-type]
    assert raised.value.field == field


def _sampling(plan: Plan) -> list[Request]:
    return [item.request for item in (*plan.rows, *plan.chunks) if item.samples]
