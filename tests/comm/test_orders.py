"""The model of the ranks' orders, without any device: what goes on, what waits for ever, and how it is told."""

from __future__ import annotations

import random

import pytest

from pygpukit.comm.orders import Call, Orders

REDUCE, BARRIER = Call("all_reduce", "sum of 5 float32"), Call("barrier")


def played(orders: Orders, schedule: list[int], programs: list[list[Call]]) -> str:
    """What is told first when ranks make their calls in the order of the schedule; "" when all programs end."""
    places = [0] * len(programs)
    for rank in schedule:
        told = orders.add(rank, programs[rank][places[rank]])
        places[rank] += 1
        if not told and places[rank] == len(programs[rank]):
            told = orders.end(rank)
        if told:
            return told
    return ""


def shuffled(programs: list[list[Call]], rng: random.Random) -> list[int]:
    schedule = [rank for rank, program in enumerate(programs) for _ in program]
    rng.shuffle(schedule)
    return schedule


def right_programs(size: int, rng: random.Random) -> list[list[Call]]:
    """Calls that meet: collectives of all, and sends with their receives."""
    programs: list[list[Call]] = [[] for _ in range(size)]
    for _ in range(rng.randint(1, 6)):
        if size > 1 and rng.random() < 0.4:
            sender, receiver = rng.sample(range(size), 2)
            details = f"{rng.randint(0, 2)} int8"
            programs[sender].append(Call("send", details, receiver))
            programs[receiver].append(Call("recv", details, sender))
        else:
            call = rng.choice((REDUCE, BARRIER, Call("all_gather", "1 bool")))
            for program in programs:
                program.append(call)
    return programs


def stuck(programs: list[list[Call]]) -> bool:
    """A second reckoning, by one state after the other: whether the programs cannot all end."""
    rest = [list(program) for program in programs]
    while any(rest):
        for rank, program in enumerate(rest):
            if not program:
                continue
            call = program[0]
            group = range(len(rest)) if call.peer is None else (rank, call.peer)
            if call.peer is None:
                ready = all(one and one[0] == call for one in rest)
            else:
                other = rest[call.peer]
                ready = bool(other) and other[0].peer == rank and other[0].details == call.details
                ready = ready and {other[0].name, call.name} == {"send", "recv"}
            if ready:
                for one in group:
                    rest[one].pop(0)
                break
        else:
            return True
    return False


def test_the_message_names_both_ranks_and_their_calls() -> None:
    orders = Orders(2)
    for call in (REDUCE, BARRIER):
        assert not orders.add(0, call) and not orders.add(1, call)
    assert not orders.add(1, REDUCE)
    told = orders.add(0, BARRIER)
    assert told == "rank 1 waits in all_reduce #3 for rank 0, which is in barrier #3"


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (
            (REDUCE, Call("all_reduce", "sum of 6 float32")),
            "rank 1 waits in all_reduce #1 (sum of 6 float32) for rank 0, which is in all_reduce #1 (sum of 5 float32)",
        ),
        (
            (Call("send", "2 int8", 1), Call("send", "2 int8", 0)),
            "rank 1 waits in send #1 (to rank 0, 2 int8) for rank 0, which is in send #1 (to rank 1, 2 int8)",
        ),
        (
            (Call("send", "2 int8", 1), Call("recv", "3 int8", 0)),
            "rank 1 waits in recv #1 (from rank 0, 3 int8) for rank 0, which is in send #1 (to rank 1, 2 int8)",
        ),
        (
            (Call("recv", "2 int8", 1), BARRIER),
            "rank 1 waits in barrier #1 for rank 0, which is in recv #1",
        ),
    ],
)
def test_calls_that_do_not_meet(calls: tuple[Call, Call], told: str) -> None:
    orders = Orders(2)
    assert not orders.add(0, calls[0])
    assert orders.add(1, calls[1]) == told


def test_a_rank_that_has_ended_is_waited_for_in_vain() -> None:
    orders = Orders(3)
    assert not orders.end(2)
    assert orders.add(1, BARRIER) == "rank 1 waits in barrier #1 for rank 2, which has ended, without a call"
    orders = Orders(2)
    assert not orders.add(0, BARRIER) and not orders.add(1, BARRIER) and not orders.add(1, REDUCE)
    assert orders.end(0) == "rank 1 waits in all_reduce #2 for rank 0, which has ended, its last call barrier #1"


def test_a_circle_of_three_is_seen_and_a_line_is_not() -> None:
    orders = Orders(3)
    assert not orders.add(0, Call("recv", "1 int8", 1)) and not orders.add(1, Call("recv", "1 int8", 2))
    told = orders.add(2, Call("recv", "1 int8", 0))
    assert told == "rank 2 waits in recv #1 (from rank 0, 1 int8) for rank 0, which is in recv #1 (from rank 1, 1 int8)"
    line = Orders(3)
    assert not line.add(0, Call("recv", "1 int8", 1)) and not line.add(1, Call("recv", "1 int8", 2))
    assert not line.add(2, Call("send", "1 int8", 1)) and not line.add(1, Call("send", "1 int8", 0))
    assert not any(line.end(rank) for rank in range(3))


@pytest.mark.parametrize("seed", range(4))
def test_right_programs_end_and_wrong_ones_are_told(seed: int) -> None:
    check_programs(random.Random(seed), 600)


@pytest.mark.slow
@pytest.mark.turns(14)
def test_many_programs_end_or_are_told() -> None:
    check_programs(random.Random(), 20_000)


def check_programs(rng: random.Random, count: int) -> None:
    """In every order of the ranks' calls; a program with one call moved, left out or changed is as the second reckoning
    has it, and what is told names ranks that really stand there."""
    wrong = 0
    for _ in range(count):
        size = rng.randint(1, 5)
        programs = right_programs(size, rng)
        assert not stuck(programs)
        assert played(Orders(size), shuffled(programs, rng), programs) == ""
        rank = rng.randrange(size)
        if programs[rank]:
            place = rng.randrange(len(programs[rank]))
            change = rng.choice(("swap", "leave out", "other"))
            if change == "leave out":
                del programs[rank][place]
            elif change == "other":
                programs[rank][place] = Call("broadcast", "1 int8 from rank 0")
            else:
                other = rng.randrange(len(programs[rank]))
                program = programs[rank]
                program[place], program[other] = program[other], program[place]
        told = played(Orders(size), shuffled(programs, rng), programs) if all(programs) else None
        if told is not None:
            assert bool(told) == stuck(programs), (told, programs)
            wrong += bool(told)
    assert wrong > 50
