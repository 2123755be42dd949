// A timeline in a plain page: the head of a profile and its records.

import { deflateSync } from 'node:zlib';
import { type Page, expect } from '@playwright/test';
import { mount, sendMessage } from './plain-page.ts';
import { panel } from './views.ts';

export const SPAN_NS = 1_000_000;
export const HEAD = {
  type: 'timeline',
  span: SPAN_NS,
  lanes: [
    [0, 0, '', 0],
    [0, 3, 'alice', 0],
    [0, 0, '', 1],
  ],
  names: ['gemm', 'softmax', 'the host: nothing was submitted', '<img src=x onerror=alert(1)>'],
  places: [
    ['', 0, ''],
    ['In [3]', 7, ''],
    ['In [4]', 2, 'memory was mapped 2 times'],
    ['In [4]', 2, ''],
  ],
  notes: ['2 works have no time of their own'],
};
/** begin, time, name, lane, place. */
export const RECORDS = [
  [0, 200_000, 0, 0, 1],
  [100_000, 50_000, 1, 1, 1],
  [200_000, 600_000, 2, 2, 2],
  [800_000, 100_000, 0, 0, 3],
  [900_000, 100_000, 3, 0, 0],
];

/** Records as the kernel sends them: columns by significance, compressed. */
export function chunk(records: readonly (readonly number[])[]): string {
  const bytes: number[] = [];
  for (let column = 0; column < 5; column++) {
    const values = records.map((record, i) => (record[column] as number) - (column === 0 && i > 0 ? (records[i - 1]?.[0] as number) : 0));
    bytes.push(3);
    for (let plane = 0; plane < 3; plane++) for (const value of values) bytes.push((value >> (8 * plane)) & 255);
  }
  return deflateSync(Uint8Array.from(bytes)).toString('base64');
}

/** A timeline that has its head, and no record yet. */
export async function beginTimeline(page: Page): Promise<void> {
  await mount(page, 'timeline');
  await page.evaluate(() => (window.answerWants = () => undefined)); // the test sends chunks itself
  await sendMessage(page, { ...HEAD, count: RECORDS.length });
}

/** A timeline with all records. */
export async function openTimeline(page: Page): Promise<void> {
  await beginTimeline(page);
  await expect.poll(() => page.evaluate(() => JSON.stringify(window.sent))).toContain('"want","chunk":0');
  await page.evaluate((data) => window.receive({ type: 'works', chunk: 0 }, data), chunk(RECORDS));
  await expect(panel(page).locator('.gk-device')).toHaveText('5 records in 1.0 ms');
}
