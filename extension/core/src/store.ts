// What a page knows of one kernel: gauges, history, memory map, tasks and names, fed by frames and snapshots.

import { BlockMap, gaps } from './blocks.js';
import { Evictions } from './evictions.js';
import { type Frame, type Gauges, FrameError, decodeFrame } from './frame.js';
import { GAP_NS, History } from './history.js';
import {
  type CellFigures,
  type DeviceSample,
  type Holding,
  type ModelContext,
  type Partition,
  type ReplayState,
  isKnown,
  parseCells,
  parseCaches,
  parseContexts,
  parseDevice,
  parseLinks,
  parseNames,
  parsePartitions,
  parsePast,
  parseReplay,
  parseTasks,
  rowCount,
} from './messages.js';
import { Phase } from './phases.js';
import { ContextPromises } from './promises.js';
import { Links } from './links.js';
import { Recent } from './recent.js';
import { Kind } from './records.js';
import { Shares } from './shares.js';
import { type Snapshot, type TaskRow, parseSnapshot } from './snapshot.js';
import { type Task, TaskTable } from './tasks.js';

/** One transition of a task, for the log. */
export interface Transition {
  readonly timeNs: number;
  readonly task: number;
  readonly from: number;
  readonly to: number;
  readonly reason: number;
}

/** An eviction, a restore, or an allocation that did not fit. */
export interface MemoryEvent {
  readonly timeNs: number;
  readonly kind: number;
  readonly bytes: number;
  readonly name: number;
  readonly tenant: number;
  /** Of an allocation that did not fit though so much was free: what was free, and the largest piece of it. */
  readonly scattered?: { readonly free: number; readonly largest: number };
}

const LOG_ENTRIES = 500;
const DEVICE_SAMPLES = 600;

export class Store {
  readonly history = new History();
  readonly memory = new BlockMap();
  readonly evictions = new Evictions();
  readonly tasks = new TaskTable();
  readonly shares = new Shares();
  readonly contextPromises = new ContextPromises();
  readonly transitions = new Recent<Transition>(LOG_ENTRIES);
  readonly memoryEvents = new Recent<MemoryEvent>(LOG_ENTRIES);
  readonly deviceSamples = new Recent<DeviceSample>(DEVICE_SAMPLES);
  readonly links = new Links();
  /** The device whose memory this is: records of others change nothing of it. */
  private place = 0;
  /** Figures of the notebook's cells, in the order in which they ran. */
  cells: readonly CellFigures[] = [];
  partitions: readonly Partition[] = [];
  contexts: readonly ModelContext[] = [];
  /** Who has which blocks of the KV caches of models. */
  caches: readonly Holding[] = [];
  gauges: Gauges | null = null;
  /** Sequence number of the GAUGE record behind `gauges`; 0 before the first frame. */
  gaugeSeq = 0;
  timeNs = 0;
  /** Records that never reached this page. */
  lost = 0;
  device = '';
  /** Messages of a known kind that cannot be read, and rows of them. */
  dropped = 0;
  /** Where the replay is that this page shows; null where it shows a kernel. */
  replay: ReplayState | null = null;
  /** Why decoding stopped, or "". Set once; later frames are ignored. */
  fault = '';

  private readonly names = new Map<number, string>();
  /** Execution count of each cell, from CELL_BEGIN records. */
  private readonly executionCounts = new Map<number, number>();
  /** The task that runs under a tenant's name: what its records say of streams is said of it. */
  private readonly runningByName = new Map<number, Task>();
  private readonly listeners = new Set<() => void>();
  private session: bigint | null = null;
  private nextSeq = 0;
  private snapshotSeq = 0;
  /** Rows of blocks in host memory, until the records have come to the moment of their snapshot. */
  private evictedThen: Snapshot['blocks'] | null = null;
  /** What each context had had of the device when it was told last; empty after a gap. */
  private contextGpuNs = new Map<number, number>();
  /** Moment of the last report of contexts; 0 before the first. */
  private contextsUpdatedNs = 0;

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** One message of the channel. Unknown types are ignored: a newer kernel may say more. */
  receive(content: unknown, buffers: readonly DataView[]): void {
    if (this.fault) return;
    const type = typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;
    if (type === 'frame') this.applyBytes(buffers[0]);
    else if (type === 'history' && buffers[0]) this.history.load(buffers[0]);
    else if (!this.applyMessage(content)) return;
    for (const listener of this.listeners) listener();
  }

  private applyMessage(content: unknown): boolean {
    const replay = parseReplay(content);
    if (replay) this.replay = replay;
    if (replay === 'begins') this.reset();
    const snapshot = parseSnapshot(content);
    if (snapshot) this.applySnapshot(snapshot);
    const facts = parseTasks(content);
    if (facts) this.applyFacts(facts.rows, facts.timeNs);
    const names = parseNames(content);
    for (const [address, id, name] of names ?? []) this.memory.rename(address, id, name);
    const cells = parseCells(content);
    if (cells) this.cells = cells;
    const partitions = parsePartitions(content);
    if (partitions) this.partitions = partitions;
    const contexts = parseContexts(content);
    if (contexts) this.applyContexts(contexts.rows, contexts.timeNs);
    const caches = parseCaches(content);
    if (caches) this.caches = caches;
    const past = parsePast(content);
    if (past) this.shares.addNoted(past);
    const device = parseDevice(content);
    if (device) this.deviceSamples.push(device);
    const links = parseLinks(content);
    if (links) this.links.apply(links.rows, links.timeNs);
    const kept = links?.rows ?? facts?.rows ?? names ?? cells ?? partitions ?? contexts?.rows ?? caches ?? past;
    if (kept) this.dropped += rowCount(content) - kept.length;
    const isRead = Boolean(snapshot ?? device ?? replay ?? kept);
    if (!isRead && isKnown(content)) this.dropped++;
    return isRead;
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
    this.place = snapshot.place;
    this.memory.clear();
    for (const [address = 0, bytes = 0] of snapshot.segments) this.memory.mapSegment(address, bytes);
    for (const [address = 0, bytes = 0, id = 0, tenant = 0, name = 0, cell = 0, line = 0, resident] of snapshot.blocks) {
      this.memory.set({ address, bytes, id, tenant, name, cell, line, resident: resident === 1 });
    }
    this.evictedThen = snapshot.blocks.filter((row) => row[7] !== 1);
    const timeNs = snapshot.timeNs ?? this.timeNs;
    if (this.isGap(timeNs)) this.contextGpuNs.clear();
    this.applyFacts(snapshot.tasks, timeNs);
  }

  private applyFacts(rows: readonly TaskRow[], timeNs: number): void {
    const since = this.tasks.updatedNs;
    const follows = !this.isGap(timeNs);
    for (const row of rows) {
      // What a task had before this page knew of any is of no known time; one that began since the last report had none.
      const before = this.tasks.get(row.number)?.facts?.gpuNs ?? (since > 0 && row.startedNs >= since ? 0 : undefined);
      const task = this.tasks.tell(row, timeNs);
      if (follows && task && before !== undefined) this.shares.add('device', this.taskName(task), timeNs, (row.gpuNs ?? 0) - before);
    }
    this.tasks.update(timeNs);
  }

  /** Whether nothing has come for long before a moment. */
  private isGap(timeNs: number): boolean {
    return this.timeNs > 0 && timeNs - this.timeNs > GAP_NS;
  }

  /** What one had before its first report, or in a gap between two, is of no known time. */
  private applyContexts(rows: readonly ModelContext[], timeNs: number): void {
    const before = this.contextGpuNs;
    for (const { number, name, gpuNs, createdNs = 0 } of rows) {
      const had = before.get(number) ?? (this.contextsUpdatedNs > 0 && createdNs >= this.contextsUpdatedNs ? 0 : gpuNs);
      this.shares.add('device', name, timeNs, gpuNs - had);
    }
    this.contextsUpdatedNs = timeNs;
    this.contextPromises.update(rows, timeNs);
    this.contexts = rows;
    this.contextGpuNs = new Map(rows.map(({ number, gpuNs }) => [number, gpuNs]));
  }

  private applyRecords(frame: Frame): void {
    const { records } = frame;
    for (let i = 0; i < records.count; i++) {
      const seq = records.seq(i);
      if (seq < this.nextSeq) continue; // seen in an earlier frame
      this.nextSeq = seq + 1;
      if (seq >= this.snapshotSeq) this.correctEvictions(records.timeNs(i));
      this.applyRecord(frame, i, seq >= this.snapshotSeq);
    }
    this.nextSeq = Math.max(this.nextSeq, frame.nextSeq);
  }

  /** Names come with the first frame, so that rows of a snapshot before it have none. */
  private correctEvictions(timeNs: number): void {
    const rows = this.evictedThen;
    this.evictedThen = null;
    if (!rows) return;
    const blocks = rows.map(([address = 0, bytes = 0, , tenant = 0]) => ({ address, tenant: this.nameOf(tenant), bytes }));
    this.evictions.correct(blocks, timeNs);
  }

  private applyRecord({ records }: Frame, i: number, afterSnapshot: boolean): void {
    const kind = records.kind(i);
    switch (kind) {
      case Kind.TASK: {
        const phases = records.b(i);
        const from = Math.min(Math.floor(phases / 256) % 256, Phase.Expired);
        const to = Math.min(phases % 256, Phase.Expired);
        const [number, reason, timeNs] = [records.a(i), records.c(i), records.timeNs(i)];
        this.tasks.transition(number, records.name(i), from, to, reason, timeNs);
        this.transitions.push({ timeNs, task: number, from, to, reason });
        const task = this.tasks.get(number);
        if (task && to === Phase.Running) this.runningByName.set(records.name(i), task);
        return;
      }
      case Kind.THROTTLE:
        this.tasks.throttled(records.a(i), records.b(i), records.timeNs(i), records.c(i));
        return;
      case Kind.HOST_LAUNCH: {
        const tenant = this.nameOf(records.tenant(i));
        if (tenant) this.shares.add('host', tenant, records.timeNs(i), records.a(i));
        this.noteStream(records.tenant(i), records.stream(i));
        return;
      }
      case Kind.LAUNCH:
        this.noteStream(records.tenant(i), records.stream(i));
        return;
      case Kind.GAUGE:
        if (records.device(i) !== this.place) return;
        this.history.push(records.timeNs(i), records.a(i), records.b(i), records.c(i));
        this.shares.advance(records.timeNs(i));
        return;
      case Kind.CELL_BEGIN:
        this.executionCounts.set(records.cell(i), records.a(i));
        return;
    }
    if (records.device(i) !== this.place) return; // what follows is about memory
    if (kind === Kind.EVICT || kind === Kind.RESTORE || kind === Kind.OUT_OF_MEMORY) {
      // OUT_OF_MEMORY has the bytes asked for where the others have an address.
      const bytes = kind === Kind.OUT_OF_MEMORY ? records.a(i) : records.b(i);
      const [name, tenant] = [records.name(i), records.tenant(i)];
      const scattered = kind === Kind.OUT_OF_MEMORY && afterSnapshot ? this.scattered(bytes) : undefined;
      this.memoryEvents.push({ timeNs: records.timeNs(i), kind, bytes, name, tenant, ...(scattered && { scattered }) });
    }
    if (kind === Kind.EVICT) {
      this.evictions.begin({ address: records.a(i), tenant: this.nameOf(records.tenant(i)), bytes: records.b(i) }, records.timeNs(i));
    } else if (kind === Kind.RESTORE || kind === Kind.FREE) {
      this.evictions.end(records.a(i), records.timeNs(i));
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

  /** The gaps, where so many bytes were free and no piece of them was large enough. */
  private scattered(bytes: number): { free: number; largest: number } | undefined {
    const room = gaps(this.memory.segments, this.memory.byAddress);
    return room.free >= bytes && room.largest < bytes ? room : undefined;
  }

  /** Tasks of one name that run at a time share this entry: the last to start has the streams that follow. */
  private noteStream(tenant: number, stream: number): void {
    if (tenant === 0 || stream === 0) return;
    const task = this.runningByName.get(tenant);
    if (!task || task.stream !== 0) return;
    task.stream = stream;
    this.tasks.version++;
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
    this.evictions.clear();
    this.tasks.clear();
    this.names.clear();
    this.executionCounts.clear();
    this.runningByName.clear();
    this.shares.clear();
    this.contextPromises.clear();
    this.contextGpuNs.clear();
    this.contextsUpdatedNs = 0;
    this.deviceSamples.clear();
    this.links.clear();
    this.transitions.clear();
    this.memoryEvents.clear();
    this.cells = [];
    this.partitions = [];
    this.contexts = [];
    this.caches = [];
    this.gauges = null;
    this.gaugeSeq = 0;
    this.nextSeq = 0;
    this.snapshotSeq = 0;
    this.evictedThen = null;
    this.lost = 0;
    this.dropped = 0;
  }
}
