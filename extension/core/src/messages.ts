// Messages beside frames and snapshots: task facts, cell figures, device samples. Whatever is not of their shape is left out.

import { type Link, isLink } from './links.js';
import { type Noted } from './shares.js';
import { type TaskRow, isTaskRow } from './snapshot.js';

/** What the device strip shows of one quantity. `value` is null where it cannot be read; `note` then says why. */
export interface DeviceField {
  readonly key: string;
  readonly label: string;
  readonly value: number | null;
  readonly unit: string;
  readonly note: string;
}

export interface DeviceSample {
  readonly timeNs: number;
  /** Where the figures come from, or why there are none. */
  readonly source: string;
  readonly fields: readonly DeviceField[];
  /** [process id, name, bytes; -1 = not told]. */
  readonly processes: readonly (readonly [number, string, number])[];
}

/** Figures of one run of a cell. Times in nanoseconds, sizes in bytes. */
export interface CellFigures {
  /** The front end's id of the cell; "" in a trace that has none. */
  readonly cell: string;
  readonly count: number;
  readonly wallNs: number;
  readonly gpuNs: number;
  readonly launches: number;
  /** Launches without a measured time: they are not in `gpuNs`. */
  readonly untimed: number;
  readonly peak: number;
  readonly kept: number;
  readonly leaked: number;
  /** False where records of the cell were overwritten before they were read: the figures are lower bounds. */
  readonly complete: boolean;
  /** The device still works on it: more GPU time is to come. */
  readonly running?: boolean;
}

/** A part of the device that is kept for some tasks, in parts per million, and what of it they were promised. */
export interface Partition {
  readonly id: string;
  readonly sharePpm: number;
  readonly usedPpm: number;
}

/** Blocks of a model's KV cache that one holder has: a sequence, earlier prompts that can be found again, or nobody. */
export interface Holding {
  readonly cache: string;
  readonly holder: string;
  readonly blocks: number;
  /** Of them, those that other sequences use, too. */
  readonly shared: number;
  readonly bytes: number;
}

/** A model's context. Share in parts per million, what it has had of the device in nanoseconds. */
export interface ModelContext {
  readonly number: number;
  readonly name: string;
  readonly sharePpm: number;
  /** Bytes; 0 = no limit of its own. */
  readonly memoryBytes: number;
  readonly gpuNs: number;
  /** The rest older kernels do not send. When it was made, and when it ended; 0 = it is there. */
  readonly createdNs?: number;
  readonly endedNs?: number;
  /** What it had of the device in its last seconds, 0 to 1, as long as it was promised a share; and why less than that, "" where it had that. */
  readonly share?: number;
  readonly shortfall?: string;
}

const MAX_ROWS = 20_000;
const CELL_NUMBERS = ['count', 'wallNs', 'gpuNs', 'launches', 'untimed', 'peak', 'kept', 'leaked'] as const;

const CONTEXT_NUMBERS = ['number', 'sharePpm', 'memoryBytes', 'gpuNs'] as const;
const HOLDING_NUMBERS = ['blocks', 'shared', 'bytes'] as const;
const CONTEXT_OPTIONAL = ['createdNs', 'endedNs', 'share'] as const;

type Message = Record<string, unknown>;

function isObject(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function rowsOf(content: unknown, type: string): unknown[] | null {
  if (!isObject(content) || content['type'] !== type || !Array.isArray(content['rows'])) return null;
  return (content['rows'] as unknown[]).slice(0, MAX_ROWS);
}

const KINDS: readonly unknown[] = ['snapshot', 'tasks', 'names', 'cells', 'partitions', 'contexts', 'caches', 'device', 'links', 'past', 'replay'];

/** Whether a message says that it is of a kind that this page reads. */
export function isKnown(content: unknown): boolean {
  return isObject(content) && KINDS.includes(content['type']);
}

export function rowCount(content: unknown): number {
  return isObject(content) && Array.isArray(content['rows']) ? content['rows'].length : 0;
}

/** Rows of one moment. */
interface Report<Row> {
  readonly timeNs: number;
  readonly rows: Row[];
}

function parseReport<Row>(content: unknown, type: string, isRow: (row: unknown) => row is Row): Report<Row> | null {
  const rows = rowsOf(content, type);
  const timeNs = isObject(content) ? content['tNs'] : null;
  return rows && typeof timeNs === 'number' ? { timeNs, rows: rows.filter(isRow) } : null;
}

export function parseTasks(content: unknown): Report<TaskRow> | null {
  return parseReport(content, 'tasks', isTaskRow);
}

export function parseLinks(content: unknown): Report<Link> | null {
  return parseReport(content, 'links', isLink);
}

export function parseContexts(content: unknown): Report<ModelContext> | null {
  const isContext = (row: unknown): row is ModelContext =>
    isObject(row) &&
    typeof row['name'] === 'string' &&
    CONTEXT_NUMBERS.every((key) => Number.isFinite(row[key])) &&
    CONTEXT_OPTIONAL.every((key) => row[key] === undefined || Number.isFinite(row[key])) &&
    (row['shortfall'] === undefined || typeof row['shortfall'] === 'string');
  return parseReport(content, 'contexts', isContext);
}

export function parseCaches(content: unknown): Holding[] | null {
  const isHolding = (row: unknown): row is Holding =>
    isObject(row) &&
    typeof row['cache'] === 'string' &&
    typeof row['holder'] === 'string' &&
    HOLDING_NUMBERS.every((key) => Number.isFinite(row[key]));
  return rowsOf(content, 'caches')?.filter(isHolding) ?? null;
}

/** [address, block id, name] of blocks that got a name. */
export function parseNames(content: unknown): [number, number, number][] | null {
  const isRow = (row: unknown): row is [number, number, number] =>
    Array.isArray(row) && row.length === 3 && row.every((value) => typeof value === 'number');
  return rowsOf(content, 'names')?.filter(isRow) ?? null;
}

export function parseCells(content: unknown): CellFigures[] | null {
  const isCell = (row: unknown): row is CellFigures =>
    isObject(row) && CELL_NUMBERS.every((key) => Number.isFinite(row[key])) && typeof row['complete'] === 'boolean';
  return rowsOf(content, 'cells')?.filter(isCell).map((row) => ({ ...row, cell: typeof row.cell === 'string' ? row.cell : '' })) ?? null;
}

export function parsePartitions(content: unknown): Partition[] | null {
  const isPartition = (row: unknown): row is Partition =>
    isObject(row) && typeof row['id'] === 'string' && Number.isFinite(row['sharePpm']) && Number.isFinite(row['usedPpm']);
  return rowsOf(content, 'partitions')?.filter(isPartition) ?? null;
}

/** Rows of [end in ns, length in ns, [[tenant, busy ns], ...]], in order of time. */
export function parsePast(content: unknown): Noted[] | null {
  const isBusy = (one: unknown): one is [string, number] => Array.isArray(one) && typeof one[0] === 'string' && Number.isFinite(one[1]);
  const isPast = (row: unknown): row is [number, number, [string, number][]] =>
    Array.isArray(row) && Number.isFinite(row[0]) && Number.isFinite(row[1]) && Array.isArray(row[2]) && row[2].every(isBusy);
  const rows = rowsOf(content, 'past')?.filter(isPast);
  return rows?.map(([endNs, spanNs, busy]) => ({ endNs, spanNs, busy })) ?? null;
}

/** Where a replay is: at its beginning, so that what was sent before is of no account, or at its end. */
export type ReplayState = 'begins' | 'ended';

export function parseReplay(content: unknown): ReplayState | null {
  if (!isObject(content) || content['type'] !== 'replay') return null;
  const state = content['state'];
  return state === 'begins' || state === 'ended' ? state : null;
}

export function parseDevice(content: unknown): DeviceSample | null {
  if (!isObject(content) || content['type'] !== 'device') return null;
  const { tNs, source, fields, processes } = content as { tNs?: unknown; source?: unknown; fields?: unknown; processes?: unknown };
  if (typeof tNs !== 'number' || typeof source !== 'string' || !Array.isArray(fields) || !Array.isArray(processes)) return null;
  const isField = (field: unknown): field is DeviceField =>
    isObject(field) &&
    ['key', 'label', 'unit', 'note'].every((key) => typeof field[key] === 'string') &&
    (field['value'] === null || Number.isFinite(field['value']));
  const isProcess = (row: unknown): row is [number, string, number] =>
    Array.isArray(row) && typeof row[0] === 'number' && typeof row[1] === 'string' && typeof row[2] === 'number';
  return { timeNs: tNs, source, fields: fields.filter(isField), processes: processes.filter(isProcess) };
}
