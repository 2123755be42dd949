// What a page knows of one kernel: gauges, history, memory map, tasks and names, fed by frames and snapshots.

import { BlockMap } from './blocks.js';
import { type Frame, type Gauges, FrameError, decodeFrame } from './frame.js';
import { History } from './history.js';
import { PHASES, Phase, isTerminal } from './phases.js';
import { Kind } from './records.js';
import { type Snapshot, type TaskRow, parseSnapshot } from './snapshot.js';
import { type Span, type Task, TaskTable } from './tasks.js';

export class Store {
  readonly history = new History();
  readonly memory = new BlockMap();
  readonly tasks = new TaskTable();
  gauges: Gauges | null = null;
  /** Sequence number of the GAUGE record behind `gauges`; 0 before the first frame. */
  gaugeSeq = 0;
  timeNs = 0;
  /** Records that never reached this page. */
  lost = 0;
  device = '';
  /** Why decoding stopped, or "". Set once; later frames are ignored. */
  fault = '';

  private readonly names = new Map<number, string>();
  /** Execution count of each cell, from CELL_BEGIN records. */
  private readonly executionCounts = new Map<number, number>();
  private readonly listeners = new Set<() => void>();
  private session: bigint | null = null;
  private nextSeq = 0;
  private snapshotSeq = 0;

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** One message of the channel. Unknown types are ignored: a newer kernel may say more. */
  receive(content: unknown, buffers: readonly DataView[]): void {
    if (this.fault) return;
    const snapshot = parseSnapshot(content);
    if (snapshot) {
      this.applySnapshot(snapshot);
    } else if (typeof content === 'object' && content !== null && (content as { type?: unknown }).type === 'frame') {
      this.applyBytes(buffers[0]);
    } else {
      return;
    }
    for (const listener of this.listeners) listener();
  }

  private applyBytes(buffer: DataView | undefined): void {
    try {
      if (!buffer) throw new FrameError('The kernel announced a telemetry frame and sent no buffer with it.');
      this.applyFrame(decodeFrame(buffer));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.fault = error.message;
    }
  }

  applyFrame(frame: Frame): void {
    if (this.session !== null && this.session !== frame.session) this.reset();
    this.session = frame.session;
    for (const [id, text] of frame.names) this.names.set(id, text);
    // A gap is what the ring overwrote or the kernel skipped; the first frame begins wherever it does.
    if (this.nextSeq > 0) this.lost += Math.max(0, frame.firstSeq - this.nextSeq);
    this.applyRecords(frame);
    if (frame.gaugeSeq <= this.gaugeSeq) return; // an older moment, replayed
    this.gaugeSeq = frame.gaugeSeq;
    this.timeNs = frame.timeNs;
    this.gauges = frame.gauges;
  }

  applySnapshot(snapshot: Snapshot): void {
    this.snapshotSeq = snapshot.seq;
    this.device = snapshot.device;
    this.memory.clear();
    for (const [address = 0, bytes = 0] of snapshot.segments) this.memory.mapSegment(address, bytes);
    for (const [address = 0, bytes = 0, id = 0, tenant = 0, name = 0, cell = 0, line = 0, resident] of snapshot.blocks) {
      this.memory.set({ address, bytes, id, tenant, name, cell, line, resident: resident === 1 });
    }
    for (const row of snapshot.tasks) {
      const known = this.tasks.get(row.number);
      const phase = PHASES.findIndex((name) => name === row.phase);
      if (phase >= 0 && known?.phase !== phase) this.tasks.add(taskFromRow(row, phase));
    }
  }

  private applyRecords(frame: Frame): void {
    const { records } = frame;
    for (let i = 0; i < records.count; i++) {
      const seq = records.seq(i);
      if (seq < this.nextSeq) continue; // seen in an earlier frame
      this.nextSeq = seq + 1;
      this.applyRecord(frame, i, seq >= this.snapshotSeq);
    }
    this.nextSeq = Math.max(this.nextSeq, frame.nextSeq);
  }

  private applyRecord({ records }: Frame, i: number, afterSnapshot: boolean): void {
    const kind = records.kind(i);
    switch (kind) {
      case Kind.TASK: {
        const phases = records.b(i);
        const from = Math.min(Math.floor(phases / 256) % 256, Phase.Expired);
        const to = Math.min(phases % 256, Phase.Expired);
        this.tasks.transition(records.a(i), records.name(i), from, to, records.c(i), records.timeNs(i));
        return;
      }
      case Kind.GAUGE:
        this.history.push(records.timeNs(i), records.a(i), records.b(i), records.c(i));
        return;
      case Kind.CELL_BEGIN:
        this.executionCounts.set(records.cell(i), records.a(i));
        return;
    }
    if (!afterSnapshot) return;
    switch (kind) {
      case Kind.ALLOC:
        this.memory.set({
          address: records.a(i),
          bytes: records.b(i),
          id: records.c(i),
          tenant: records.tenant(i),
          name: records.name(i),
          cell: records.cell(i),
          line: records.line(i),
          resident: true,
        });
        return;
      case Kind.FREE:
        this.memory.free(records.a(i));
        return;
      case Kind.EVICT:
      case Kind.RESTORE:
        this.memory.setResident(records.a(i), kind === Kind.RESTORE);
        return;
      case Kind.SEGMENT_MAP:
        this.memory.mapSegment(records.a(i), records.b(i));
        return;
      case Kind.SEGMENT_UNMAP:
        this.memory.unmapSegment(records.a(i));
        return;
    }
  }

  /** The text of an interned id; "" when it is not known yet. */
  nameOf(id: number): string {
    return this.names.get(id) ?? '';
  }

  taskName(task: Task): string {
    const name = typeof task.name === 'string' ? task.name : this.nameOf(task.name);
    return name || `task ${task.number}`;
  }

  /** Where in the notebook: "In [3], line 2", or "" when not from a cell. */
  placeOf(cell: number, line: number): string {
    if (cell === 0) return '';
    const count = this.executionCounts.get(cell);
    const where = count === undefined ? 'a cell' : `In [${count}]`;
    return line > 0 ? `${where}, line ${line}` : where;
  }

  private reset(): void {
    this.history.clear();
    this.memory.clear();
    this.tasks.clear();
    this.names.clear();
    this.executionCounts.clear();
    this.gauges = null;
    this.gaugeSeq = 0;
    this.nextSeq = 0;
    this.snapshotSeq = 0;
    this.lost = 0;
  }
}

function taskFromRow(row: TaskRow, phase: number): Task {
  const spans: Span[] = [];
  const waited = row.startedNs || row.finishedNs;
  spans.push({ phase: Phase.Queued, startNs: row.submittedNs, endNs: waited });
  if (row.startedNs) spans.push({ phase: Phase.Running, startNs: row.startedNs, endNs: row.finishedNs });
  if (isTerminal(phase)) spans.push({ phase, startNs: row.finishedNs, endNs: row.finishedNs });
  return { number: row.number, name: row.name, phase, reason: 0, spans };
}
