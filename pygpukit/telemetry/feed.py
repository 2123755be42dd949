"""The messages of one subscriber, a page or a recorder: the state first, then frames, and what frames lack."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pygpukit import _core
from pygpukit.core import records
from pygpukit.telemetry import cell_figures, rows, sampler, tenants
from pygpukit.telemetry.late import late
from pygpukit.telemetry.past import past
from pygpukit.telemetry.sensors import DeviceSampler
from pygpukit.telemetry.tenants import TaskSource, adjustments, all_tasks, contexts, cores
from pygpukit.telemetry.trace import Message

HISTORY_RECORDS = 4096  # what a subscriber gets of the ring's past
SNAPSHOT_BLOCKS = 4096  # the largest blocks; more would be more than a page can show
FACT_ROWS = 12_000
FACTS_S = 0.5  # between two reports of tasks, and of contexts
NAMES_S = SHARES_S = 1.0
DEVICE_S = 1.0
LINKS_S = 0.5


class Feed:
    """Makes messages; sends nothing. device: the sampler of a subscriber that wants device samples. links: it wants the
    links between devices. place: the device whose memory the messages are about."""

    def __init__(
        self,
        label: str,
        tasks: TaskSource = all_tasks,
        device: DeviceSampler | None = None,
        links: bool = False,
        place: int = 0,
    ) -> None:
        self.label = label
        self._place = place
        self._links = links
        self._links_due = 0.0
        self._tasks = tasks
        self._device = device
        self._expected_seq = 0
        self._sent: dict[int, tuple[Any, ...]] = {}
        self._facts_due = 0.0
        self._facts_pending = True
        self._device_due = 0.0
        self._cells_version = self._adjustments = -1
        self._partitions: list[dict[str, Any]] = []
        self._contexts: list[dict[str, Any]] = []
        self._caches: list[dict[str, Any]] = []
        self._contexts_due = self._shares_due = 0.0
        self._names: dict[int, int] = {}  # name of each live block, by block id
        self._names_due = 0.0

    def begin(self) -> tuple[list[Message], int, int]:
        """All that a subscriber needs who knows nothing, and where the frames go on: sequence number and name id."""
        self._sent = {}
        self._facts_pending = True
        self._facts_due = self._contexts_due = self._device_due = self._links_due = 0.0
        self._cells_version = self._adjustments = -1
        self._partitions = []
        self._contexts, self._caches = [], []
        self._names_due = time.monotonic() + NAMES_S
        snapshot = self.snapshot()
        frame, since, since_name = _core.telemetry_frame(self._place, max(1, _core.ring_head() - HISTORY_RECORDS), 0)
        self._expected_seq = since
        messages: list[Message] = [
            (snapshot, ()),
            ({"type": "history"}, (sampler.history(self._place),)),
            ({"type": "frame"}, (frame,)),
        ]
        if noted := past.rows():
            messages.append(({"type": "past", "rows": noted}, ()))
        return messages + list(self._beside()), since, since_name

    def follow(self, frame: bytes) -> Iterator[Message]:
        """One frame and what belongs to it. Where records are missing before it, the state follows."""
        first, following = records.SEQUENCES.unpack_from(frame)
        missing, self._expected_seq = first > self._expected_seq, following
        yield {"type": "frame"}, (frame,)
        if missing:
            yield self.snapshot(), ()
        (count,) = records.RECORDS.unpack_from(frame)
        kinds = slice(records.IN_FRAME + records.KIND_AT, records.IN_FRAME + records.BYTES * count, records.BYTES)
        self._facts_pending |= records.TASK in frame[kinds]
        yield from self._beside()

    def flush(self) -> None:
        """Puts what is held back into the next call of follow()."""
        self._facts_pending = True
        self._facts_due = self._contexts_due = self._names_due = 0.0

    def snapshot(self) -> dict[str, Any]:
        """The state that a subscriber starts from. Records older than `seq` are contained in it."""
        seq = _core.ring_head()
        blocks = _core.pool_blocks(self._place)
        if len(blocks) > SNAPSHOT_BLOCKS:
            blocks = sorted(blocks, key=lambda block: block[2], reverse=True)[:SNAPSHOT_BLOCKS]
        self._names = {block[0]: block[4] for block in blocks}
        cell_figures.measure_devices()
        unstarted = tenants.unstarted()
        return {
            "type": "snapshot",
            "seq": seq,
            "tNs": _core.now_ns(),
            "device": self.label,
            "place": self._place,
            "blocks": [
                [address, size, block, tenant, name, cell, line, int(resident)]
                for block, address, size, tenant, name, cell, line, resident in blocks
            ],
            "segments": [[address, size] for address, size, mapped in _core.pool_segments(self._place) if mapped],
            "tasks": [rows.task_row(task, label, label in unstarted) for label, task in self._tasks()[-FACT_ROWS:]],
        }

    def _beside(self) -> Iterator[Message]:
        """Tasks, contexts, caches, names of blocks, cells, device: each when it is time and there is something new."""
        now = time.monotonic()
        if now >= self._names_due:
            self._names_due = now + NAMES_S
            if renamed := self._renamed_blocks():
                yield {"type": "names", "rows": renamed}, ()
        if self._adjustments != (adjusted := adjustments()):
            self._adjustments = adjusted
            self._facts_pending = True
        if self._facts_pending and now >= self._facts_due:
            self._facts_due = now + FACTS_S
            changed = self._changed_rows()
            # While tasks run their times grow without a record.
            self._facts_pending = any(phase == "Running" for phase, *_ in self._sent.values())
            if (partitions := rows.partition_rows(cores())) != self._partitions:
                self._partitions = partitions
                yield {"type": "partitions", "rows": partitions}, ()
            if changed:
                yield {"type": "tasks", "tNs": _core.now_ns(), "rows": changed}, ()
        if now >= self._contexts_due:  # no record tells of what they get
            self._contexts_due = now + FACTS_S
            if (caches := tenants.caches()) != self._caches:
                self._caches = caches
                yield {"type": "caches", "rows": caches}, ()
            context_records = rows.context_rows(contexts())
            if now >= self._shares_due:  # that of one that does nothing falls, and nothing else of it changes
                is_new = context_records != self._contexts
            else:
                is_new = [row | {"share": 0} for row in context_records] != [
                    row | {"share": 0} for row in self._contexts
                ]
            if is_new:
                self._contexts = context_records
                self._shares_due = now + SHARES_S
                yield {"type": "contexts", "tNs": _core.now_ns(), "rows": context_records}, ()
        cell_figures.ledger.refresh()
        if self._cells_version != cell_figures.ledger.version:
            self._cells_version = cell_figures.ledger.version
            yield {"type": "cells", "rows": [row.message() for row in cell_figures.ledger.rows()]}, ()
        if self._device is not None and now >= self._device_due:
            self._device_due = now + DEVICE_S
            yield self._device.sample(), ()
        if self._links and now >= self._links_due:
            self._links_due = now + LINKS_S
            yield {"type": "links", "tNs": _core.now_ns(), "rows": rows.link_rows()}, ()

    def _renamed_blocks(self) -> list[list[int]]:
        """[address, block id, name] of blocks that got a name since they were told: no record says so."""
        blocks = _core.pool_blocks(self._place)[:SNAPSHOT_BLOCKS]
        renamed = [[b[1], b[0], b[4]] for b in blocks if b[4] != self._names.get(b[0], 0)]
        self._names = {block[0]: block[4] for block in blocks}
        return renamed

    def _changed_rows(self) -> list[dict[str, Any]]:
        changed = []
        sent = {}
        cell_figures.measure_devices()
        unstarted = tenants.unstarted()
        for label, task in self._tasks()[-FACT_ROWS:]:
            idle = label in unstarted
            waits = task.waited_ns, task.throttled_ns
            figures = task.gpu_ns, task.launches, task.paced, task.priority, task.share_ppm
            # Of one that launches nothing the share falls, and nothing else changes.
            share = late.of_task(task).share if task.phase == "Running" else None
            state = (task.phase, task.paused, idle, waits, figures, share)
            if self._sent.get(task.number) != state:
                changed.append(rows.task_row(task, label, idle))
            sent[task.number] = state
        self._sent = sent
        return changed
