// Task phases and reasons as TASK records number them.

export const PHASES = [
  'Submitted',
  'Rejected',
  'Queued',
  'Admitted',
  'Running',
  'Suspended',
  'Succeeded',
  'Failed',
  'Cancelled',
  'Expired',
] as const;

export type PhaseName = (typeof PHASES)[number];

export const Phase = {
  Submitted: 0,
  Rejected: 1,
  Queued: 2,
  Admitted: 3,
  Running: 4,
  Suspended: 5,
  Succeeded: 6,
  Failed: 7,
  Cancelled: 8,
  Expired: 9,
} as const;

/** No transition leaves a terminal phase. */
export function isTerminal(phase: number): boolean {
  return phase === Phase.Rejected || phase >= Phase.Succeeded;
}

/** Of a task that waits because it is paused; its facts tell when it is not any more. */
export const WAITING_FOR_RESUME = 39;

/** Reason codes to the sentence fragment that a reader needs. */
export const REASONS: ReadonlyMap<number, string> = new Map([
  [1, 'exceeds the device'],
  [2, 'exceeds its partition'],
  [3, 'compute share oversubscribed'],
  [4, 'queue full'],
  [5, 'priority not allowed'],
  [6, 'deadline cannot be met'],
  [7, 'device unhealthy'],
  [8, 'shutting down'],
  [9, 'invalid specification'],
  [33, 'waiting for memory'],
  [34, 'waiting for compute share'],
  [35, 'waiting for preemption'],
  [36, 'waiting for a dependency'],
  [37, 'waiting for the device'],
  [38, 'waiting to run again'],
  [39, 'paused'],
  [65, 'compile error'],
  [66, 'launch error'],
  [67, 'device error'],
  [68, 'worker lost'],
  [69, 'out of memory'],
  [70, 'stopped by the watchdog'],
  [71, 'dependency failed'],
  [72, 'raised an error'],
]);
