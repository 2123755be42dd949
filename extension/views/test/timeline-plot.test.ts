import { type Head, TimelineData, makeRows } from '@pygpukit/core';
import { expect, test } from 'vitest';
import { type Brush, paintRows } from '../src/timeline/plot.js';

const COUNT = 1_000_000;
const WIDTH = 1280;

/** A million works of two streams, one every microsecond, the 700th of each thousand under another name. */
function million(): TimelineData {
  const head: Head = {
    count: COUNT,
    spanNs: COUNT * 1000,
    lanes: [0, 1].map((stream) => ({ device: 0, stream, tenant: '', waits: false })),
    names: ['often', 'seldom'],
    places: [{ cell: '', line: 0, detail: '' }],
    notes: [],
  };
  const data = new TimelineData(head);
  for (let i = 0; i < COUNT; i++) {
    data.beginNs[i] = 1000 * i;
    data.tookNs[i] = 900;
    data.name[i] = i % 1000 === 700 ? 1 : 0;
    data.lane[i] = i & 1;
  }
  data.length = COUNT;
  return data;
}

class Counted implements Brush {
  fillStyle = '';
  globalAlpha = 1;
  readonly alphas: number[] = [];
  texts = 0;
  fillRect(x: number, _y: number, width: number): void {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(WIDTH + 1);
    this.alphas.push(this.globalAlpha);
  }
  fillText(): void {
    this.texts++;
  }
}

test('a million records are painted with two bars a pixel at most, and found ones are never left out', () => {
  const data = million();
  const rows = makeRows(data, 'stream');
  expect(rows).toHaveLength(2);
  const paint = (fromNs: number, toNs: number, searching: boolean): Counted => {
    const brush = new Counted();
    const frame = paintRows(brush, data, rows, { fromNs, toNs }, WIDTH, () => 'red', searching, 'white');
    expect(frame.bars).toBe(brush.alphas.length);
    expect(frame.bars).toBeLessThanOrEqual(rows.length * 2 * WIDTH);
    expect(frame.seen).toBeLessThanOrEqual(2 * WIDTH * 12);
    return brush;
  };
  expect(paint(0, data.head.spanNs, false).alphas.length).toBeGreaterThan(WIDTH);
  expect(paint(5e8, 5e8 + 20_000, false).texts).toBeGreaterThan(5);
  rows.forEach(({ levels }) => levels.mark((record) => data.name[record] === 1));
  const whole = paint(0, data.head.spanNs, true).alphas;
  expect(whole.filter((alpha) => alpha === 1).length).toBeGreaterThan(0);
  const near = paint(699_000, 702_000, true).alphas; // the 700th and its neighbours
  expect(near.filter((alpha) => alpha === 1)).toHaveLength(1);
  expect(near.length).toBeGreaterThan(2);
});
