// The state message that a page gets when it begins to look, and after records were lost.

/** Rows as the kernel sends them; strings in task rows, interned ids in block rows. */
export interface Snapshot {
  /** The ring's head when the kernel began to read its tables: older records are already contained. */
  readonly seq: number;
  /** Its moment; null from kernels that do not say it. */
  readonly timeNs: number | null;
  readonly device: string;
  /** The number of the device whose memory it is; older kernels have one. */
  readonly place: number;
  readonly blocks: readonly (readonly number[])[];
  readonly segments: readonly (readonly number[])[];
  readonly tasks: readonly TaskRow[];
}

export interface TaskRow {
  readonly number: number;
  readonly name: string;
  readonly phase: string;
  readonly submittedNs: number;
  readonly startedNs: number;
  readonly finishedNs: number;
  /** The rest is what records do not carry; older kernels do not send it. */
  readonly id?: string;
  readonly scheduler?: string;
  readonly paused?: boolean;
  readonly policy?: string;
  readonly priority?: number;
  readonly sharePpm?: number;
  readonly memoryBytes?: number;
  readonly gpuNs?: number;
  readonly launches?: number;
  readonly paced?: number;
  /** The most of the device that it may have; a million where nothing limits it. */
  readonly limitPpm?: number;
  /** How long its launches waited for their turn, and how long its limit held them. */
  readonly waitedNs?: number;
  readonly throttledNs?: number;
  /** What it had of the device in its last seconds, 0 to 1, as long as it was promised a share; and why less than that, "" where it had that. */
  readonly share?: number;
  readonly shortfall?: string;
  /** Its scheduler has not been started. */
  readonly unstarted?: boolean;
  /** Asked against available, as the kernel words it. */
  readonly detail?: string;
}

const OPTIONAL_TEXTS = ['id', 'scheduler', 'policy', 'detail', 'shortfall'] as const;
const OPTIONAL_NUMBERS = ['priority', 'sharePpm', 'memoryBytes', 'gpuNs', 'launches', 'paced', 'limitPpm', 'waitedNs', 'throttledNs', 'share'] as const;

function isNumberRow(value: unknown, length: number): value is number[] {
  return Array.isArray(value) && value.length === length && value.every((x) => typeof x === 'number');
}

export function isTaskRow(value: unknown): value is TaskRow {
  if (typeof value !== 'object' || value === null) return false;
  const row = value as Record<string, unknown>;
  const numbers = [row['number'], row['submittedNs'], row['startedNs'], row['finishedNs']];
  return (
    numbers.every((x) => typeof x === 'number') &&
    typeof row['name'] === 'string' &&
    typeof row['phase'] === 'string' &&
    (['paused', 'unstarted'] as const).every((key) => row[key] === undefined || typeof row[key] === 'boolean') &&
    OPTIONAL_TEXTS.every((key) => row[key] === undefined || typeof row[key] === 'string') &&
    OPTIONAL_NUMBERS.every((key) => row[key] === undefined || Number.isFinite(row[key]))
  );
}

/** The message as a snapshot; null when it is not one. Rows of another shape are left out. */
export function parseSnapshot(content: unknown): Snapshot | null {
  if (typeof content !== 'object' || content === null) return null;
  const message = content as Record<string, unknown>;
  if (message['type'] !== 'snapshot' || typeof message['seq'] !== 'number') return null;
  const rows = (key: string): unknown[] => (Array.isArray(message[key]) ? (message[key] as unknown[]) : []);
  return {
    seq: message['seq'],
    timeNs: typeof message['tNs'] === 'number' ? message['tNs'] : null,
    device: typeof message['device'] === 'string' ? message['device'] : '',
    place: typeof message['place'] === 'number' ? message['place'] : 0,
    blocks: rows('blocks').filter((row): row is number[] => isNumberRow(row, 8)),
    segments: rows('segments').filter((row): row is number[] => isNumberRow(row, 2)),
    tasks: rows('tasks').filter(isTaskRow),
  };
}
