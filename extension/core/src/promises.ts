// What each tenant was promised of the device, as steps over time: kept after a task has ended or its share was changed.

import { Phase } from './phases.js';
import { type Task } from './tasks.js';

/** From a moment on, until the next step. */
export interface Step {
  readonly fromNs: number;
  /** Of the device, 0 to 1. */
  readonly share: number;
}

const PPM = 1e6;
const MAX_STEPS = 64;

/** A share counts from the moment it is set aside for a task to the task's end; a paused task keeps it. */
function holds(phase: number): boolean {
  return phase === Phase.Admitted || phase === Phase.Running || phase === Phase.Suspended;
}

/** A context as it is promised a share; older kernels send no times. */
interface Promised {
  readonly name: string;
  readonly sharePpm: number;
  readonly createdNs?: number;
  readonly endedNs?: number;
}

/** Promises of contexts, noted as the kernel tells of them. */
export class ContextPromises {
  private readonly steps = new Map<string, Step[]>();

  clear(): void {
    this.steps.clear();
  }

  /** From this moment on there are these contexts and no others. What came and went unseen has its own times. */
  update(rows: readonly Promised[], timeNs: number): void {
    const ended = rows.filter(({ name, endedNs = 0 }) => endedNs > 0 && !this.steps.has(name));
    for (const { name, sharePpm, createdNs = timeNs, endedNs = timeNs } of ended) {
      this.push(name, createdNs, sharePpm / PPM);
      this.push(name, endedNs, 0);
    }
    const shares = new Map<string, number>([...this.steps.keys()].map((name) => [name, 0]));
    const since = new Map<string, number>();
    for (const { name, sharePpm, createdNs = timeNs, endedNs = 0 } of rows) {
      if (endedNs > 0) continue;
      shares.set(name, (shares.get(name) ?? 0) + sharePpm / PPM);
      if (!this.steps.has(name)) since.set(name, Math.min(since.get(name) ?? createdNs, createdNs));
    }
    for (const [name, share] of shares) {
      const over = rows.find((row) => row.name === name && (row.endedNs ?? 0) > 0);
      this.push(name, since.get(name) ?? (share === 0 ? (over?.endedNs ?? timeNs) : timeNs), share);
    }
  }

  private push(name: string, fromNs: number, share: number): void {
    const steps = this.steps.get(name) ?? [];
    if (share === (steps.at(-1)?.share ?? 0)) return;
    steps.push({ fromNs, share });
    this.steps.set(name, steps.slice(-MAX_STEPS));
  }

  entries(): Iterable<[string, readonly Step[]]> {
    return this.steps;
  }
}

/** The steps of each tenant that was promised something since `fromNs`, in order of time; its last step holds until now. */
export function promisedSteps(
  tasks: readonly Task[],
  nameOf: (task: Task) => string,
  contexts: ContextPromises,
  fromNs: number,
): Map<string, Step[]> {
  const changes = new Map<string, [number, number][]>();
  const change = (name: string, timeNs: number, share: number): void => {
    if (share === 0) return;
    const own = changes.get(name);
    if (own) own.push([timeNs, share]);
    else changes.set(name, [[timeNs, share]]);
  };
  for (const task of tasks) {
    if (task.promised.length === 0 || (task.spans.at(-1)?.endNs || Infinity) < fromNs) continue;
    const name = nameOf(task);
    for (const { phase, startNs, endNs } of task.spans) {
      if (!holds(phase)) continue;
      task.promised.forEach(({ fromNs: since, share }, i) => {
        const from = Math.max(since, startNs);
        const to = Math.min(task.promised[i + 1]?.fromNs ?? Infinity, endNs || Infinity);
        if (from >= to) return;
        change(name, from, share);
        if (to !== Infinity) change(name, to, -share);
      });
    }
  }
  for (const [name, steps] of contexts.entries()) {
    steps.forEach(({ fromNs: at, share }, i) => change(name, at, share - (steps[i - 1]?.share ?? 0)));
  }
  return new Map([...changes].map(([name, all]) => [name, sums(all)]));
}

/** Running sums, one step a moment; what rounding leaves of nothing is nothing. */
function sums(changes: [number, number][]): Step[] {
  const steps: Step[] = [];
  let share = 0;
  for (const [fromNs, by] of changes.sort(([one], [other]) => one - other)) {
    share += by;
    const step = { fromNs, share: Math.round(share * PPM) / PPM };
    if (steps.at(-1)?.fromNs === fromNs) steps.pop();
    if (steps.at(-1)?.share !== step.share) steps.push(step);
  }
  return steps;
}
