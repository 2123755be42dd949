// A kernel's listings and figures as the control channel sends them, read defensively.

import type { JSONObject, JSONValue } from '@lumino/coreutils';

export type Kind = 'ptx' | 'sass';
export const KINDS: readonly Kind[] = ['ptx', 'sass'];

export interface Line {
  /** Of the cell, from 1; 0 where none is known. */
  readonly source: number;
  readonly text: string;
}

export interface Listing {
  readonly lines: readonly Line[];
  /** How many lines the kernel left out. */
  readonly left: number;
  /** Why there are no lines. */
  readonly problem: string;
}

export interface Assembly {
  readonly arch: string;
  readonly listings: Readonly<Record<Kind, Listing>>;
  readonly card: JSONObject;
}

/** null while the kernel works on it. Throws one sentence where the answer has another shape. */
export function parseAssembly(answer: JSONObject): Assembly | null {
  if (answer['state'] === 'working') return null;
  const { arch, listings, card } = answer;
  if (answer['state'] !== 'done' || typeof arch !== 'string' || !isObject(listings) || !isObject(card)) {
    throw new Error('The kernel sent a listing that this version of the extension cannot read.');
  }
  return { arch, card, listings: { ptx: parseListing(listings['ptx']), sass: parseListing(listings['sass']) } };
}

function parseListing(data: JSONValue | undefined): Listing {
  if (!isObject(data) || !Array.isArray(data['lines'])) return { lines: [], left: 0, problem: 'The kernel sent no such listing.' };
  const lines = data['lines'].flatMap((one) => {
    if (!Array.isArray(one) || typeof one[1] !== 'string') return [];
    return [{ source: count(one[0]), text: one[1] }];
  });
  return { lines, left: count(data['left']), problem: typeof data['problem'] === 'string' ? data['problem'] : '' };
}

export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly note: string;
}

/** The card's rows: what is not known says so, nothing is guessed. */
export function facts(card: JSONObject): Fact[] {
  const number = (key: string): number | null => (typeof card[key] === 'number' ? card[key] : null);
  const text = (value: number | null, show: (value: number) => string): string => (value === null ? 'not known' : show(value));
  const bytes = (value: number): string => (value === 0 ? 'none' : `${value.toLocaleString('en')} B`);
  const percent = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} %`;
  const threads = number('threads');
  const limiter = typeof card['limiter'] === 'string' ? `, limited by ${card['limiter']}` : '';
  const rows: Fact[] = [
    { name: 'Registers', value: text(number('registers'), String), note: 'of a thread' },
    { name: 'Local memory', value: text(number('local_bytes'), bytes), note: 'of a thread: spills and arrays' },
    { name: 'Shared memory', value: text(number('shared_bytes'), bytes), note: 'of a block, static' },
    {
      name: 'Occupancy',
      value: text(number('occupancy'), (share) => percent(100 * share)),
      note: threads === null ? '' : `blocks of ${threads}${limiter}`,
    },
  ];
  const measured = (key: string, name: string, note: string): void => {
    const value = number(key);
    rows.push({ name, value: value === null ? 'not measured' : percent(value), note });
  };
  measured('copy', 'Memory rate', 'of the copy rate measured here');
  measured('fma', 'Arithmetic rate', 'of the float32 FMA rate measured here');
  return rows;
}

/** For each source line the index of the first line of code that it became. */
export function firstLines(lines: readonly Line[]): ReadonlyMap<number, number> {
  const first = new Map<number, number>();
  lines.forEach(({ source }, at) => {
    if (source > 0 && !first.has(source)) first.set(source, at);
  });
  return first;
}

function count(value: JSONValue | undefined): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
