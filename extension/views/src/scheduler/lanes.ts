// Which rows the Gantt has, over which stretch of time it shows them, and how a task's state reads.

import { PHASES, Phase, REASONS, type Store, type Stretch, type Task, WAITING_FOR_RESUME, format, isTerminal } from '@pygpukit/core';
import { type Window } from '../timed.js';

const MAX_SPAN_NS = 60e9;
const MIN_SPAN_NS = 2e9;
/** Rows that one tenant or stream takes at most; beyond them bars lie over each other. */
const MAX_ROWS_PER_LANE = 8;

export const GROUPINGS = ['task', 'tenant', 'stream'] as const;
export type Grouping = (typeof GROUPINGS)[number];

const POLICIES: ReadonlyMap<string, string> = new Map([
  ['Guaranteed', 'guaranteed'],
  ['Burstable', 'burstable'],
  ['BestEffort', 'best effort'],
]);

/** One row of bars. Rows of a tenant or stream follow each other; only the first carries the label. */
export interface Row {
  readonly label: string;
  /** In order of their beginnings. */
  readonly tasks: readonly Task[];
  /** When the latest of the tasks up to each ends: it never falls, so that a search can halve it. */
  readonly reachNs: Float64Array;
}

function makeRow(label: string, tasks: Task[]): Row {
  tasks.sort((one, other) => beginNs(one) - beginNs(other));
  const reachNs = new Float64Array(tasks.length);
  let latest = 0;
  for (const [i, task] of tasks.entries()) reachNs[i] = latest = Math.max(latest, untilNs(task, Infinity));
  return { label, tasks, reachNs };
}

export function beginNs({ spans }: Task): number {
  return spans[0]?.startNs ?? 0;
}

export function untilNs({ spans, phase }: Task, nowNs: number): number {
  return isTerminal(phase) ? (spans.at(-1)?.endNs ?? 0) : nowNs;
}

/** The tasks of a row that a window may show: found by halving, so that a row may be long. */
export function visibleTasks({ tasks, reachNs }: Row, { fromNs, toNs }: Window): readonly Task[] {
  const first = firstIndex(tasks.length, (i) => (reachNs[i] ?? 0) >= fromNs);
  const end = firstIndex(tasks.length, (i) => beginNs(tasks[i] as Task) > toNs);
  return tasks.slice(first, end);
}

/** The first index for which a condition holds that holds for all later ones too; `length` where there is none. */
function firstIndex(length: number, holds: (i: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Rows in order of first appearance; where tasks of a lane overlap in time, the lane takes several rows. */
export function layoutRows(store: Store, grouping: Grouping, all: readonly Task[] = store.tasks.all): Row[] {
  if (grouping === 'task') return all.map((task) => makeRow(store.taskName(task), [task]));
  const lanes = new Map<string, { rows: Task[][]; free: number[] }>();
  for (const task of all) {
    const started = task.spans.find(({ phase }) => phase === Phase.Running)?.startNs;
    if (grouping === 'stream' && started === undefined) continue; // it has been on no stream
    const label = grouping === 'tenant' ? store.taskName(task) : task.stream ? `stream ${task.stream}` : 'stream not seen';
    let lane = lanes.get(label);
    if (!lane) lanes.set(label, (lane = { rows: [], free: [] }));
    const from = grouping === 'stream' ? (started ?? 0) : beginNs(task);
    const until = untilNs(task, Infinity);
    let at = lane.free.findIndex((free) => free <= from);
    if (at < 0 && lane.rows.length < MAX_ROWS_PER_LANE) {
      lane.rows.push([]);
      at = lane.rows.length - 1;
    } else if (at < 0) {
      at = lane.free.indexOf(Math.min(...lane.free));
    }
    lane.rows[at]?.push(task);
    lane.free[at] = Math.max(until, lane.free[at] ?? 0);
  }
  return [...lanes].flatMap(([label, { rows }]) => rows.map((tasks, i) => makeRow(i === 0 ? label : '', tasks)));
}

/**
 * The last minute, or from the first task where that is less; it rests where the last task ended and the last launch was seen,
 * so that a run stays in sight once it is over.
 */
export function pickWindow(tasks: readonly Task[], nowNs: number, launchedNs: number): Window {
  const whole = extent(tasks, nowNs);
  if (!whole) return { fromNs: nowNs - MAX_SPAN_NS, toNs: nowNs };
  const lives = tasks.some(({ phase }) => !isTerminal(phase));
  const toNs = lives ? nowNs : Math.min(nowNs, Math.max(whole.toNs, launchedNs));
  return { fromNs: Math.min(Math.max(whole.fromNs, toNs - MAX_SPAN_NS), toNs - MIN_SPAN_NS), toNs };
}

/** From the first span's start to the last one's end; null without a task. */
export function extent(tasks: readonly Task[], nowNs: number): Window | null {
  let first = Infinity;
  let last = 0;
  for (const task of tasks) {
    first = Math.min(first, beginNs(task));
    last = Math.max(last, untilNs(task, nowNs));
  }
  return first > last ? null : { fromNs: first, toNs: last };
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

/** When blocks of a task's tenant were in host memory while it lived: of tasks of one name, one cannot be told from another. */
export function evictedIn(store: Store, task: Task): readonly Stretch[] {
  const [from, to] = [beginNs(task), untilNs(task, store.timeNs)];
  return store.evictions
    .of(store.taskName(task))
    .map(({ startNs, endNs, bytes }) => ({ startNs: Math.max(startNs, from), endNs: Math.min(endNs || store.timeNs, to), bytes }))
    .filter(({ startNs, endNs }) => startNs < endNs);
}

/** What a row's lane shows as evicted: all of a tenant's in its first row, and nothing in lanes by stream. */
export function evictedInRow(store: Store, row: Row, grouping: Grouping): readonly Stretch[] {
  const [task] = row.tasks;
  if (grouping === 'task' && task) return evictedIn(store, task);
  return grouping === 'tenant' ? store.evictions.of(row.label) : [];
}

/** The state of a row's one task and its class, or how many it has; and what its tenant has in host memory now. */
export function rowText(store: Store, { label, tasks }: Row, grouping: Grouping): string {
  const task = tasks.length === 1 ? tasks[0] : undefined;
  const text = task ? stateText(task, store.timeNs) : `${tasks.length} tasks`;
  const lives = grouping === 'task' && task && !isTerminal(task.phase);
  const bytes = store.evictions.bytesOf(lives ? store.taskName(task) : grouping === 'tenant' ? label : '');
  const evicted = bytes > 0 ? `, ${format.bytes(bytes)} evicted` : '';
  // A reason is more than a class, and there is no room for both.
  const policy = task && reasonText(task) ? undefined : POLICIES.get(task?.facts?.policy ?? '');
  return `${text}${evicted}${policy ? ` \u00b7 ${policy}` : ''}`;
}

/** "up to 2 MiB for 1.2 s", "" without a stretch. */
export function evictedText(stretches: readonly Stretch[], nowNs: number): string {
  if (stretches.length === 0) return '';
  const ns = stretches.reduce((sum, { startNs, endNs }) => sum + (endNs || nowNs) - startNs, 0);
  return `up to ${format.bytes(Math.max(...stretches.map(({ bytes }) => bytes)))} for ${format.duration(ns)}`;
}

/** Held back until it is resumed: one that runs is Suspended, of one that waits its facts tell, or until they come its reason. */
export function isPaused({ phase, reason, facts }: Task): boolean {
  if (phase !== Phase.Queued) return phase === Phase.Suspended;
  return facts?.paused ?? reason === WAITING_FOR_RESUME;
}

/** The reason as a fragment, "" where there is none: that of a pause ends with it, though no record says so. */
export function reasonText(task: Task): string {
  if (task.phase === Phase.Queued && isPaused(task)) return REASONS.get(WAITING_FOR_RESUME) ?? '';
  return task.reason === WAITING_FOR_RESUME ? '' : (REASONS.get(task.reason) ?? '');
}

const KEPT = { limit: ', held back by its limit', turn: ', waits for its turn', '': '' } as const;

/** "Running 1.2 s", "Queued: waiting for memory", "Paused", "Succeeded in 340.0 ms". */
export function stateText(task: Task, nowNs: number): string {
  const phase = task.phase === Phase.Suspended ? 'Paused' : (PHASES[task.phase] ?? '');
  const reason = reasonText(task);
  if (reason) return `${phase}: ${reason}`;
  if (task.phase === Phase.Running) {
    return `${phase} ${format.duration(ranNs(task, nowNs))}${KEPT[task.kept]}`;
  }
  if (task.phase === Phase.Succeeded) return `${phase} in ${format.duration(ranNs(task, nowNs))}`;
  return phase;
}

/** Everything known of a task, a line each; `evicted` is what its lane shows. */
export function taskLines(store: Store, task: Task, evicted: readonly Stretch[]): string[] {
  const { facts } = task;
  const lines = [store.taskName(task), stateText(task, store.timeNs)];
  lines.push(`waited ${format.duration(waitedNs(task, store.timeNs))}, ran ${format.duration(ranNs(task, store.timeNs))}`);
  if (facts?.policy) {
    const share = facts.sharePpm ? `, share ${format.percent(facts.sharePpm, 1e6)}` : '';
    const memory = facts.memoryBytes ? `, memory ${format.bytes(facts.memoryBytes)}` : '';
    lines.push(`${facts.policy}, priority ${facts.priority ?? 0}${share}${memory}`);
  }
  if (facts?.detail) lines.push(facts.detail);
  if (facts?.waitedNs) lines.push(`launches waited ${format.duration(facts.waitedNs)} for their turn`);
  if (facts?.throttledNs) lines.push(`held back ${format.duration(facts.throttledNs)} by its limit of ${format.percent(facts.limitPpm ?? 1e6, 1e6)}`);
  if (facts?.shortfall) lines.push(`less than promised: ${facts.shortfall}`);
  if (evicted.length > 0) lines.push(`evicted to host memory: ${evictedText(evicted, store.timeNs)}`);
  if (task.stream) lines.push(`stream ${task.stream}`);
  return lines;
}
