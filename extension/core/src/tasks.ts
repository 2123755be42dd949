// Tasks and the phases they went through, kept from snapshots, TASK records and task facts.

import { PHASES, Phase, isTerminal } from './phases.js';
import { type Step } from './promises.js';
import { type TaskRow } from './snapshot.js';

/** Time spent in one phase; `endNs` is 0 while the task is still in it. */
export interface Span {
  readonly phase: number;
  readonly startNs: number;
  endNs: number;
}

export interface Task {
  readonly number: number;
  /** Interned name, or text that a snapshot brought. */
  readonly name: number | string;
  phase: number;
  /** Reason code of the last transition; 0 = none. */
  reason: number;
  readonly spans: Span[];
  /** Stream of its launches and allocations; 0 = none seen. */
  stream: number;
  /** What records do not carry; null until the kernel told. */
  facts: TaskRow | null;
  /** Stretches in which its limit held its launches back, as the gate recorded them. */
  readonly throttled: Span[];
  /** Stretches in which its launches waited for their turn, as far apart as the kernel's reports are. */
  readonly waits: Span[];
  /** What kept it from the device lately: a limit of its own, or others. */
  kept: 'limit' | 'turn' | '';
  /** The share that it was promised, and each other one since; empty until the kernel told. */
  readonly promised: Step[];
}

const MAX_SPANS = 64;
const MAX_STRETCHES = 1000;
const PPM = 1e6;
/** Of a stretch of time: what is held or waits for less of it hardly waits at all. */
const MIN_PART = 0.1;
/** Records of holds that follow one another are one stretch. */
const JOIN_NS = 10e6;

/** The newest tasks; the oldest finished ones make room. */
export class TaskTable {
  private readonly tasks = new Map<number, Task>();
  private sorted: Task[] | null = null;
  /** Moment of the last report of facts; 0 before the first. */
  updatedNs = 0;
  /** Grows with every change: a view lays out again only then. */
  version = 0;

  constructor(private readonly capacity = 12_000) {}

  clear(): void {
    this.tasks.clear();
    this.updatedNs = 0;
    this.changed();
  }

  get(number: number): Task | undefined {
    return this.tasks.get(number);
  }

  /** In order of submission; the same array until a task comes or goes. */
  get all(): readonly Task[] {
    this.sorted ??= [...this.tasks.values()].sort((x, y) => x.number - y.number);
    return this.sorted;
  }

  add(task: Task): void {
    this.tasks.set(task.number, task);
    this.trim();
    this.changed();
  }

  /** One TASK record. A task never seen before starts in the phase it came from. */
  transition(number: number, name: number, from: number, to: number, reason: number, timeNs: number): void {
    let task = this.tasks.get(number);
    if (!task) {
      const spans = [{ phase: from, startNs: timeNs, endNs: 0 }];
      task = { number, name, phase: from, reason: 0, spans, stream: 0, facts: null, throttled: [], waits: [], kept: '', promised: [] };
      this.add(task);
    }
    const last = task.spans.at(-1);
    if (last && last.startNs > timeNs) return; // older than what a snapshot told
    if (last && last.endNs === 0) last.endNs = timeNs;
    task.phase = to;
    task.reason = reason;
    task.spans.push({ phase: to, startNs: timeNs, endNs: isTerminal(to) ? timeNs : 0 });
    if (task.spans.length > MAX_SPANS) task.spans.splice(0, task.spans.length - MAX_SPANS);
    this.version++;
  }

  /** A row of the kernel's table: its facts, and the whole task where records did not tell it. */
  tell(row: TaskRow, timeNs: number): Task | null {
    const phase = PHASES.findIndex((name) => name === row.phase);
    if (phase < 0) return null;
    let task = this.tasks.get(row.number);
    if (!task || (task.phase !== phase && task.spans.every(({ startNs }) => startNs <= rowTimeNs(row)))) {
      const known = task ?? { stream: 0, facts: null, throttled: [], waits: [], kept: '' as const, promised: [], reason: 0 };
      task = { ...known, number: row.number, name: row.name, phase, spans: spansOf(row, phase) };
      this.add(task);
    }
    if (task.facts) this.noteWaits(task, task.facts, row, timeNs);
    promise(task, row, timeNs);
    task.facts = row;
    this.version++;
    return task;
  }

  /** A THROTTLE record: a limit held it so long in a stretch; where that is next to nothing, it says nothing. */
  throttled(number: number, fromNs: number, toNs: number, heldNs: number): void {
    const task = this.tasks.get(number);
    if (!task || heldNs < MIN_PART * (toNs - fromNs)) return;
    extend(task.throttled, fromNs, toNs, JOIN_NS);
    this.version++;
  }

  /** What it waited since its last report: for its turn, or held by its limit, whichever was more. */
  private noteWaits(task: Task, before: TaskRow, row: TaskRow, timeNs: number): void {
    const minNs = MIN_PART * (timeNs - this.updatedNs);
    const waited = (row.waitedNs ?? 0) - (before.waitedNs ?? 0);
    const held = (row.throttledNs ?? 0) - (before.throttledNs ?? 0);
    if (waited > minNs) extend(task.waits, this.updatedNs, timeNs, 0);
    task.kept = Math.max(waited, held) <= minNs ? '' : held >= waited ? 'limit' : 'turn';
  }

  /** The rows told since are of this moment. */
  update(timeNs: number): void {
    this.updatedNs = timeNs;
  }

  /** Number of tasks in each phase, indexed by phase: of all that are known, or of these. */
  countByPhase(tasks: Iterable<Task> = this.tasks.values()): Uint32Array {
    const counts = new Uint32Array(Phase.Expired + 1);
    for (const task of tasks) counts[task.phase] = (counts[task.phase] ?? 0) + 1;
    return counts;
  }

  private changed(): void {
    this.sorted = null;
    this.version++;
  }

  private trim(): void {
    if (this.tasks.size <= this.capacity) return;
    for (const task of this.tasks.values()) {
      if (!isTerminal(task.phase)) continue;
      this.tasks.delete(task.number);
      if (this.tasks.size <= this.capacity) return;
    }
    // Only live tasks are left: the oldest goes, so that a flood of submissions cannot grow the page.
    const oldest = this.tasks.keys().next();
    if (!oldest.done) this.tasks.delete(oldest.value);
  }
}

function extend(stretches: Span[], startNs: number, endNs: number, joinNs: number): void {
  const open = stretches.at(-1);
  if (open && open.endNs + joinNs >= startNs) open.endNs = Math.max(open.endNs, endNs);
  else stretches.push({ phase: Phase.Running, startNs, endNs });
  if (stretches.length > MAX_STRETCHES) stretches.shift();
}

/** The first share that is told counts from the beginning, another one from when it is told. */
function promise({ promised }: Task, { sharePpm = 0 }: TaskRow, timeNs: number): void {
  const share = sharePpm / PPM;
  if (share === (promised.at(-1)?.share ?? 0)) return;
  promised.push({ fromNs: promised.length > 0 ? timeNs : 0, share });
  if (promised.length > MAX_SPANS) promised.shift();
}

function rowTimeNs(row: TaskRow): number {
  return Math.max(row.submittedNs, row.startedNs, row.finishedNs);
}

function spansOf(row: TaskRow, phase: number): Span[] {
  const spans: Span[] = [];
  if (phase !== Phase.Rejected) {
    spans.push({ phase: Phase.Queued, startNs: row.submittedNs, endNs: row.startedNs || row.finishedNs });
  }
  if (row.startedNs) spans.push({ phase: Phase.Running, startNs: row.startedNs, endNs: row.finishedNs });
  if (isTerminal(phase)) spans.push({ phase, startNs: row.finishedNs, endNs: row.finishedNs });
  return spans;
}
