// How long tasks waited and ran: counts in buckets that double, and exact percentiles.

import { Phase } from './phases.js';
import { type Task } from './tasks.js';

/** Bucket k holds 2^k to 2^(k+1) microseconds; the first also what is shorter, the last what is longer. */
export const LATENCY_BUCKETS = 28;

export interface Latency {
  readonly label: 'waited' | 'ran';
  readonly counts: Uint32Array;
  readonly samples: number;
  /** Nanoseconds; 0 where there is no sample. */
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly maxNs: number;
}

export function histogram(valuesNs: readonly number[]): Uint32Array {
  const counts = new Uint32Array(LATENCY_BUCKETS);
  for (const value of valuesNs) {
    const bucket = Math.min(Math.max(0, Math.floor(Math.log2(Math.max(1, value / 1000)))), LATENCY_BUCKETS - 1);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return counts;
}

function latency(label: 'waited' | 'ran', valuesNs: number[]): Latency {
  const sorted = Float64Array.from(valuesNs).sort();
  // Nearest rank.
  const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { label, counts: histogram(valuesNs), samples: sorted.length, p50Ns: rank(0.5), p99Ns: rank(0.99), maxNs: rank(1) };
}

/** Waits of the tasks that have begun to run, and run times of those that have ended. */
export function summarise(tasks: readonly Task[]): readonly [Latency, Latency] {
  const waited: number[] = [];
  const ran: number[] = [];
  for (const { spans } of tasks) {
    const started = spans.find(({ phase }) => phase === Phase.Running);
    const first = spans[0];
    if (!started || !first) continue;
    waited.push(started.startNs - first.startNs);
    let sum = 0;
    let open = false;
    for (const { phase, startNs, endNs } of spans) {
      if (phase !== Phase.Running) continue;
      open ||= endNs === 0;
      sum += endNs - startNs;
    }
    if (!open) ran.push(sum);
  }
  return [latency('waited', waited), latency('ran', ran)];
}
