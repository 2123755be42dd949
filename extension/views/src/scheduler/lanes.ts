// Which tasks the Gantt shows, over which stretch of time, and how a task's state reads.

import { PHASES, Phase, REASONS, type Task, format, isTerminal } from '@pygpukit/core';

const MAX_SPAN_NS = 60e9;
const MIN_SPAN_NS = 2e9;

export interface Window {
  readonly fromNs: number;
  readonly toNs: number;
}

/** The newest tasks, live ones before finished ones, back in order of submission. */
export function pickLanes(tasks: readonly Task[], count: number): Task[] {
  const live = tasks.filter((task) => !isTerminal(task.phase)).slice(-count);
  const room = count - live.length;
  const finished = room > 0 ? tasks.filter((task) => isTerminal(task.phase)).slice(-room) : [];
  return [...live, ...finished].sort((x, y) => x.number - y.number);
}

/** From the first shown span to now; when nothing runs, the picture rests where the last task ended. */
export function pickWindow(lanes: readonly Task[], nowNs: number): Window {
  let first = Infinity;
  let last = 0;
  for (const { spans, phase } of lanes) {
    first = Math.min(first, spans[0]?.startNs ?? Infinity);
    last = Math.max(last, isTerminal(phase) ? (spans.at(-1)?.endNs ?? 0) : nowNs);
  }
  if (first > last) return { fromNs: nowNs - MIN_SPAN_NS, toNs: nowNs };
  const span = Math.min(Math.max((last - first) * 1.04, MIN_SPAN_NS), MAX_SPAN_NS);
  const from = Math.max(first, last - span);
  return { fromNs: from, toNs: from + span };
}

export function waitedNs(task: Task, nowNs: number): number {
  return spanNs(task, nowNs, (phase) => phase <= Phase.Admitted && phase !== Phase.Rejected);
}

export function ranNs(task: Task, nowNs: number): number {
  return spanNs(task, nowNs, (phase) => phase === Phase.Running);
}

function spanNs(task: Task, nowNs: number, belongs: (phase: number) => boolean): number {
  let sum = 0;
  for (const { phase, startNs, endNs } of task.spans) {
    if (belongs(phase)) sum += Math.max(0, (endNs || nowNs) - startNs);
  }
  return sum;
}

/** "Running 1.2 s", "Queued: waiting for memory", "Succeeded in 340.0 ms". */
export function stateText(task: Task, nowNs: number): string {
  const phase = PHASES[task.phase] ?? '';
  const reason = REASONS.get(task.reason);
  if (reason) return `${phase}: ${reason}`;
  if (task.phase === Phase.Running) return `${phase} ${format.duration(ranNs(task, nowNs))}`;
  if (task.phase === Phase.Succeeded) return `${phase} in ${format.duration(ranNs(task, nowNs))}`;
  return phase;
}
