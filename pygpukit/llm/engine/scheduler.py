"""Scheduler: continuous batching. Which rows and which parts of prompts a step computes, over which blocks; no tensors.

A step takes the next position of every sequence that decodes, with drafts behind it where there is room, and of prompts
as many tokens as its budget has left.
Beside the rows of "guaranteed" requests a small part of the prompts of others is computed over many steps, some layers
in each.
Requests come and go between steps. Where blocks run out, the newest of the lowest policy is preempted: it waits, and
its prompt is prefilled again and the tokens of its answer are decoded again, each in the way in which it was computed
first, so that its bits stay what they are.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.core.sizes import whole
from pygpukit.llm.engine.blocks import BlockManager, Copy
from pygpukit.llm.engine.clients import Clients
from pygpukit.llm.engine.request import POLICIES, Request

BESIDE = 256  # tokens of prompts at a time whose pass goes on by parts beside who is guaranteed
_TURN = 16  # plans after which those who wait are looked at in any case: their order follows how much is served


class Row(NamedTuple):
    """One position of a sequence that decodes. samples: it gives the next token; else that is known, and the row is
    computed again. blocks: of the sequence, until the next plan. drafts: positions behind it that may be computed, too,
    as if their tokens were known; accept() tells how many of them were right."""

    request: Request
    position: int
    samples: bool
    blocks: Sequence[int]
    drafts: int = 0


class Chunk(NamedTuple):
    """Positions start .. end - 1 of a prompt. samples: the first token of the answer comes after them. blocks: as a
    row's."""

    request: Request
    start: int
    end: int
    samples: bool
    blocks: Sequence[int]


class Plan(NamedTuple):
    """A step: copies of blocks first, then rows and chunks. preempted, expired: requests that it has no more.

    parted: the pass over the chunks that were planned last may go on by parts, over this step and those after it; else
    all of it is to be launched with this step, before its copies where it began with an earlier one, and told by
    passed()."""

    copies: Sequence[Copy]
    rows: Sequence[Row]
    chunks: Sequence[Chunk]
    preempted: Sequence[Request]
    expired: Sequence[Request]
    parted: bool = False


class Scheduler:
    """Plans steps over the blocks of one model. Not safe from several threads: its engine's loop alone.

    max_rows: sequences that run at a time. budget: tokens of a step, more than that, so that prompts go on beside any
    number of rows. max_waiting: requests that may wait for their beginning; so many and max_rows are here at most.
    Raises InvalidSpecError for what cannot be.
    """

    def __init__(self, blocks: BlockManager, *, max_rows: int = 256, budget: int = 768, max_waiting: int = 256) -> None:
        for name, value, minimum in (("max_rows", max_rows, 1), ("budget", budget, 2), ("max_waiting", max_waiting, 0)):
            expected = f"a whole number of {minimum} or more"
            if whole(value, name, expected) < minimum:
                raise InvalidSpecError(f"{name}={value!r}; give {expected}", name)
        if budget <= max_rows:
            raise InvalidSpecError(
                f"budget={budget} leaves prompts nothing beside {max_rows} rows; give more", "budget"
            )
        self.blocks, self.max_rows, self.budget, self.max_waiting = blocks, max_rows, budget, max_waiting
        self.running: list[Request] = []  # by rank
        self.waiting: list[Request] = []
        self.passing: list[Request] = []  # those of a pass by parts
        self._clients = Clients()
        self._arrived = 0
        self._settled = True  # who waits could not begin, and nothing has come, ended or been found out since
        self._busy = False  # the last plan had something to do
        self._plans = 0
        self.next_deadline = math.inf  # of all that are here, or one that was

    def submit(self, request: Request) -> None:
        """Let it wait for its turn.

        Raises TaskRejectedError where too many wait, InvalidSpecError where it would not fit with all blocks its own.
        """
        needed = self.blocks.needed(request.positions)
        if needed > self.blocks.count:
            room = self.blocks.count * self.blocks.size
            raise InvalidSpecError(
                f"a prompt of {len(request.prompt)} tokens and an answer of {request.max_new_tokens} need "
                f"{request.positions} positions, and the KV cache has {room}; shorten them, or give it more memory",
                "max_new_tokens",
            )
        waiting, here = sum(not other.preemptions for other in self.waiting), len(self.running) + len(self.waiting)
        # Those that gave way count, too, where nobody reads their answers: else they would pile up.
        if waiting >= self.max_waiting or here >= self.max_rows + self.max_waiting:
            waiting = waiting if waiting >= self.max_waiting else len(self.waiting)
            detail = {"waiting": waiting, "limit": self.max_waiting}
            raise TaskRejectedError(f"{waiting} requests wait already; come back later", "QueueFull", detail)
        request.number = self._arrived
        self._arrived += 1
        self._clients.enter(request.client)
        self._wait(request)
        self.next_deadline = min(self.next_deadline, request.deadline)

    def end(self, request: Request) -> None:
        """It has ended, or nobody wants it any more: its blocks are free at once, since whoever gets them writes after
        the steps that were planned before. Nothing happens where it has ended already."""
        if request.state == "ended":
            return
        self._remove(request)
        request.state = "ended"
        self._clients.leave(request.client)

    def set_credit(self, request: Request, tokens: int) -> None:
        """So many tokens of the answer may be chosen by now. One that stands still keeps its blocks, until they are
        wanted by others."""
        request.credit = tokens
        self._settled = self._settled and request.state != "waiting"

    def accept(self, request: Request, tokens: int) -> None:
        """So many drafts of its row in the last plan were right: their keys are in the cache, and a token of the answer
        is chosen behind each. The positions of the others are computed again. To be told before the next plan; nothing
        happens where it has ended."""
        if not tokens or request.state == "ended":
            return
        request.sampled += tokens
        if request.state == "running":
            self._advance(request, request.computed + tokens)
        if request.sampled == request.max_new_tokens:
            self.end(request)

    def plan(self, now: float = 0.0) -> Plan:
        """The next step; it must be launched before anything else is asked. A request whose last token it chooses has
        ended with it. now: the time that deadlines are of."""
        expired = self._expire(now)
        preempted: list[Request] = []
        copies: list[Copy] = []
        self._plans += 1
        passes = bool(self.passing)  # then nobody begins, who might find keys that are not computed yet
        if not passes and (not self._settled or not self._busy or self._plans % _TURN == 0):
            self._admit(preempted, copies)
        rows = self._rows(preempted, copies)
        rows = self._with_drafts(rows, copies)
        beside = any(row.request.tier == 0 for row in rows)
        chunks = [] if passes else self._chunks(self.budget - len(rows) - sum(row.drafts for row in rows), beside)
        if beside and all(chunk.request.tier > 0 for chunk in chunks):
            self.passing += [chunk.request for chunk in chunks]
        self._busy = bool(rows or chunks or self.passing)
        for request in [*(row.request for row in rows), *(chunk.request for chunk in chunks)]:
            if request.sampled == request.max_new_tokens and request not in self.passing:
                self.end(request)
        return Plan(copies, rows, chunks, preempted, expired, beside and self._may_part())

    def passed(self) -> None:
        """The pass by parts is launched whole."""
        passed, self.passing = self.passing, []
        for request in passed:
            if request.sampled == request.max_new_tokens:
                self.end(request)
        self._settled = False

    def _may_part(self) -> bool:
        """True if the pass by parts may go on so: all that it writes is its requests' own still, and nobody waits for
        its end who is guaranteed, too."""
        waits = any(request.tier == 0 and not request.is_stalled for request in self.waiting)
        return bool(self.passing) and not waits and all(request.state == "running" for request in self.passing)

    def queue_position(self, request: Request) -> int:
        """Number of waiting requests that go before a waiting one."""
        own = self._order(request)
        return sum(self._order(other) < own for other in self.waiting)

    def _order(self, request: Request) -> tuple[int, int, int, float, int]:
        """Which of two waiting requests, or of two prompts, goes first: the smaller."""
        client = request.client
        counts = self._clients.served(client), self._clients.running(client)
        return request.tier, *counts, request.deadline, request.number

    def _wait(self, request: Request) -> None:
        request.state = "waiting"
        self.waiting.append(request)
        self._settled = False

    def _remove(self, request: Request) -> None:
        """Out of the queue it is in; its blocks are free."""
        if request.state == "running":
            self.running.remove(request)
            self._clients.change_running(request.client, -1)
        else:
            self.waiting.remove(request)
        self.blocks.close(request.table)
        self._settled = False

    def _preempt(self, request: Request, preempted: list[Request]) -> None:
        self._remove(request)
        request.computed = 0
        request.preemptions += 1
        preempted.append(request)
        self._wait(request)

    def _expire(self, now: float) -> list[Request]:
        if now < self.next_deadline:
            return []
        live = [*self.running, *self.waiting]
        expired = [request for request in live if request.deadline <= now]
        for request in expired:
            self.end(request)
        self.next_deadline = min((r.deadline for r in live if r.state != "ended"), default=math.inf)
        return expired

    def _admit(self, preempted: list[Request], copies: list[Copy]) -> None:
        """Begin waiting requests in their order. One that does not fit lets nobody of its policy go before it; those of
        lower ones may, since they give way to it as soon as it fits."""
        for tier in range(len(POLICIES)):
            while candidates := [
                request for request in self.waiting if request.tier == tier and not request.is_stalled
            ]:
                request = min(candidates, key=self._order)
                if not self._begin(request, preempted, copies):
                    break
        self._settled = True

    def _begin(self, request: Request, preempted: list[Request], copies: list[Copy]) -> bool:
        """Let a request run, if need be in the place of others; False if there is no room."""
        blocks, table = self.blocks, self.blocks.open(request.prompt, request.salt)
        end = request.positions if request.tier == 0 else request.length
        victims: list[Request] = []

        def fits() -> bool:
            """With a block more for each that may soon need one, lest it preempts who has just begun."""
            growing = sum(other.tier > 0 for other in self.running) - len(victims)
            free = blocks.free + blocks.freed(victim.table for victim in victims)
            rows = self.max_rows - len(self.running) + len(victims)
            return rows > 0 and free >= blocks.missing(table, table.cached, end) + growing

        if not fits():
            blocks.give_back(table)  # nobody gives way for what can as well be computed
        for other in reversed(self.running):
            if fits():
                break
            if self._displaces(request, other, victims):
                victims.append(other)
        if not fits():
            blocks.close(table)
            return False
        for victim in victims:
            self._preempt(victim, preempted)
        grown = blocks.grow(table, table.cached, end)
        assert grown is not None, "there are as many free blocks as were counted"
        copies += grown
        self.waiting.remove(request)
        request.table, request.state = table, "running"
        request.computed = request.reused = table.cached
        insort(self.running, request, key=lambda other: other.rank)
        self._clients.change_running(request.client, 1)
        return True

    def _displaces(self, request: Request, other: Request, victims: list[Request]) -> bool:
        """True if a waiting request takes the place of a running one: of a lower policy, of one that stands still, or
        of one of the same policy whose client would still run more than its own. So nobody displaces in turn."""
        if other.tier == 0 or request.tier < other.tier or other.is_stalled:
            return other.tier > 0
        gone = sum(victim.client == other.client for victim in victims)
        runs, others = self._clients.running(request.client), self._clients.running(other.client) - gone
        return request.tier == other.tier and runs + 1 < others

    def _rows(self, preempted: list[Request], copies: list[Copy]) -> list[Row]:
        """A row of each sequence that decodes, with a block for it; those of the lowest rank give theirs."""
        rows = []
        for request in list(self.running):
            samples = request.computed == request.length - 1
            if request.state != "running" or request.computed < len(request.prompt) or (samples and request.is_stalled):
                continue
            if self.passing and request in self.passing:
                continue
            while (grown := self.blocks.grow(request.table, request.computed, request.computed + 1)) is None:
                victim = self.running[-1]
                self._preempt(victim, preempted)
                if victim is request:
                    break
            if grown is None:
                continue
            copies += grown
            rows.append(Row(request, request.computed, samples, request.table.blocks))
            self._advance(request, request.computed + 1)
        return rows

    def _with_drafts(self, rows: list[Row], copies: list[Copy]) -> list[Row]:
        """Rows with as many drafts as their requests want, as long as there are rows and blocks that nobody needs."""
        if not any(row.request.drafts for row in rows):
            return rows
        left = self.max_rows - len(rows)
        result = []
        for row in rows:
            request = row.request
            end = min(request.max_new_tokens, request.credit) - request.sampled
            count = max(min(request.drafts, left, end), 0) if row.samples else 0
            if count:
                grown = self.blocks.grow(request.table, request.computed, request.computed + count)
                count = 0 if grown is None else count
                copies += grown or ()
            left -= count
            result.append(row._replace(drafts=count))
        return result

    def _chunks(self, left: int, beside: bool) -> list[Chunk]:
        """Parts of prompts, as many tokens as are left. beside: rows of who is guaranteed."""
        chunks = []
        prefilling = [request for request in self.running if request.computed < len(request.prompt)]
        prefilling.sort(key=self._order)
        if beside and prefilling and prefilling[0].tier > 0:
            left = min(left, BESIDE)
        for request in prefilling:
            start, end = request.computed, min(request.computed + left, len(request.prompt))
            if end == start:
                break
            chunks.append(Chunk(request, start, end, end == request.length, request.table.blocks))
            left -= end - start
            self._advance(request, end)
            self.blocks.register(request.table, request.prompt, end)
            self._settled = False  # who begins alike needs fewer blocks now
        return chunks

    def _advance(self, request: Request, computed: int) -> None:
        request.computed = computed
        if computed > request.charged:
            self._clients.charge(request.client, computed - request.charged)
            request.charged = computed
        request.sampled += computed == request.length
