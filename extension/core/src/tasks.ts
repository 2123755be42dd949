// Tasks and the phases they went through, kept from a snapshot and TASK records.

import { Phase, isTerminal } from './phases.js';

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
}

const MAX_SPANS = 64;

/** The newest tasks; the oldest finished ones make room. */
export class TaskTable {
  private readonly tasks = new Map<number, Task>();

  constructor(private readonly capacity = 512) {}

  clear(): void {
    this.tasks.clear();
  }

  get(number: number): Task | undefined {
    return this.tasks.get(number);
  }

  /** In order of submission. */
  get all(): Task[] {
    return [...this.tasks.values()].sort((x, y) => x.number - y.number);
  }

  add(task: Task): void {
    this.tasks.set(task.number, task);
    this.trim();
  }

  /** One TASK record. A task never seen before starts in the phase it came from. */
  transition(number: number, name: number, from: number, to: number, reason: number, timeNs: number): void {
    let task = this.tasks.get(number);
    if (!task) {
      task = { number, name, phase: from, reason: 0, spans: [{ phase: from, startNs: timeNs, endNs: 0 }] };
      this.add(task);
    }
    const last = task.spans.at(-1);
    if (last && last.startNs > timeNs) return; // older than what a snapshot told
    if (last && last.endNs === 0) last.endNs = timeNs;
    task.phase = to;
    task.reason = reason;
    task.spans.push({ phase: to, startNs: timeNs, endNs: isTerminal(to) ? timeNs : 0 });
    if (task.spans.length > MAX_SPANS) task.spans.splice(0, task.spans.length - MAX_SPANS);
  }

  /** Number of known tasks in each phase, indexed by phase. */
  countByPhase(): Uint32Array {
    const counts = new Uint32Array(Phase.Expired + 1);
    for (const task of this.tasks.values()) counts[task.phase] = (counts[task.phase] ?? 0) + 1;
    return counts;
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
