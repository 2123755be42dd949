// What a stretch of a timeline holds: counts and times by name, and what a search finds in it.

import { type TimelineData } from './data.js';
import { type TimelineRow } from './rows.js';

export interface TimelineSum {
  readonly name: string;
  readonly waits: boolean;
  readonly count: number;
  /** The part that lies in the stretch. */
  readonly totalNs: number;
  readonly longestNs: number;
}

/** Sums of works and of waits in a stretch, those that take longest first. Looks at each record in it once. */
export function sums(data: TimelineData, rows: readonly TimelineRow[], fromNs: number, toNs: number): TimelineSum[] {
  const byName = new Map<number, { count: number; totalNs: number; longestNs: number; waits: boolean }>();
  for (const { levels, waits } of rows) {
    levels.paint(fromNs, toNs, 0, (record, beginNs, endNs) => {
      const part = Math.min(endNs, toNs) - Math.max(beginNs, fromNs);
      const name = data.name[record] as number;
      let sum = byName.get(name);
      if (!sum) byName.set(name, (sum = { count: 0, totalNs: 0, longestNs: 0, waits }));
      sum.count++;
      sum.totalNs += part;
      sum.longestNs = Math.max(sum.longestNs, endNs - beginNs);
    });
  }
  return [...byName].map(([name, sum]) => ({ name: data.head.names[name] ?? '', ...sum })).sort((one, other) => other.totalNs - one.totalNs);
}

/** Whether a record's name or cell has a text in it, whatever its case; null for no text. */
export function searched({ head, name, place }: TimelineData, text: string): ((record: number) => boolean) | null {
  const lower = text.trim().toLowerCase();
  if (lower === '') return null;
  const names = Uint8Array.from(head.names, (one) => (one.toLowerCase().includes(lower) ? 1 : 0));
  const places = Uint8Array.from(head.places, ({ cell }) => (cell.toLowerCase().includes(lower) ? 1 : 0));
  return (record) => names[name[record] as number] === 1 || places[place[record] as number] === 1;
}

/** The next record after one, or before it, for which a condition holds; around the end. -1 where there is none. */
export function nextMatch(length: number, from: number, step: 1 | -1, holds: (record: number) => boolean): number {
  for (let i = 1; i <= length; i++) {
    const record = (((from + step * i) % length) + length) % length;
    if (holds(record)) return record;
  }
  return -1;
}
