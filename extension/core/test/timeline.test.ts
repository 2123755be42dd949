import { expect, test } from 'vitest';
import { CHUNK, Levels, TimelineData, makeRows, nextMatch, readHead, searched, sums } from '../src/index.js';

/** A generator of fresh numbers, told when a test fails. */
const seed = (Math.random() * 2 ** 31) | 0;
let state = seed;
const random = (below: number): number => {
  state = (state + 0x6d2b79f5) | 0;
  let x = Math.imul(state ^ (state >>> 15), state | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) % below;
};

const LANES = [
  [0, 0, '', 0],
  [0, 3, 'alice', 0],
  [0, 0, '', 1],
];
const NAMES = ['gemm', 'softmax', 'copy to the host', 'a compile'];
const PLACES = [
  ['', 0, ''],
  ['In [3]', 7, ''],
  ['In [4]', 2, 'unit'],
];

const head = (count: number): unknown => ({ type: 'timeline', count, span: 1e9, lanes: LANES, names: NAMES, places: PLACES, notes: ['a note'] });

interface Item {
  readonly begin: number;
  readonly took: number;
  readonly name: number;
  readonly lane: number;
  readonly place: number;
}

/** A chunk as the kernel packs it, before it is compressed. */
function packed(items: readonly Item[], before = 0): Uint8Array {
  const columns = [
    items.map(({ begin }, i) => begin - (i ? (items[i - 1] as Item).begin : before)),
    items.map(({ took }) => took),
    items.map(({ name }) => name),
    items.map(({ lane }) => lane),
    items.map(({ place }) => place),
  ];
  const bytes: number[] = [];
  for (const column of columns) {
    let width = 0;
    while (column.some((value) => value >= 256 ** width)) width++;
    bytes.push(width);
    for (let plane = 0; plane < width; plane++) for (const value of column) bytes.push(Math.floor(value / 256 ** plane) % 256);
  }
  return Uint8Array.from(bytes);
}

function items(count: number): Item[] {
  let begin = 0;
  return Array.from({ length: count }, () => {
    begin += random(5000);
    return { begin, took: random(9000), name: random(NAMES.length), lane: random(2), place: random(PLACES.length) };
  });
}

function dataOf(all: readonly Item[]): TimelineData {
  const data = new TimelineData(readHead(head(all.length))!);
  while (!data.complete) {
    const first = data.length;
    data.add(packed(all.slice(first, first + CHUNK), first ? (all[first - 1] as Item).begin : 0));
  }
  return data;
}

test('chunks are read back as they were, over their borders', () => {
  const all = items(CHUNK + 777);
  all[5] = { ...(all[5] as Item), took: 2 ** 47 };
  const data = dataOf(all);
  expect(data.length, `seed ${seed}`).toBe(all.length);
  for (const i of [0, 1, 5, CHUNK - 1, CHUNK, CHUNK + 776]) {
    const { begin, took, name, lane, place } = all[i] as Item;
    expect([data.beginNs[i], data.tookNs[i], data.name[i], data.lane[i], data.place[i]]).toEqual([begin, took, name, lane, place]);
  }
});

test('a chunk that is cut off, too long, or names what is not there is refused', () => {
  const good = packed(items(50));
  const fresh = (): TimelineData => new TimelineData(readHead(head(50))!);
  fresh().add(good);
  for (let length = 0; length < good.length; length += 7) expect(() => fresh().add(good.slice(0, length))).toThrow('timeline');
  expect(() => fresh().add(Uint8Array.from([...good, 0]))).toThrow('too long');
  expect(() => fresh().add(packed([{ begin: 0, took: 1, name: NAMES.length, lane: 0, place: 0 }, ...items(49)]))).toThrow('names what is not there');
  expect(() => fresh().add(Uint8Array.from([200, ...good]))).toThrow('cut off');
});

test('a head of another form is none', () => {
  expect(readHead(head(3))?.lanes[1]).toEqual({ device: 0, stream: 3, tenant: 'alice', waits: false });
  for (const [key, value] of [
    ['type', 'works'],
    ['count', -1],
    ['count', 1e9],
    ['count', '3'],
    ['span', 0],
    ['span', Number.NaN],
    ['lanes', [[0, 0, 7, 0]]],
    ['lanes', [[0, 0, '', 2]]],
    ['names', [1]],
    ['names', 'gemm'],
    ['places', [['x', -1, '']]],
    ['notes', null],
  ] as const) {
    expect(readHead({ ...(head(3) as object), [key]: value }), key).toBeNull();
  }
  expect(readHead(null)).toBeNull();
});

test('levels paint every record of a window, and none outside of it', () => {
  const all = items(3000);
  const data = dataOf(all);
  const rows = makeRows(data, 'stream');
  expect(rows.reduce((sum, { levels }) => sum + levels.items.length, 0)).toBe(all.length);
  for (let round = 0; round < 50; round++) {
    const from = random(7_000_000);
    const to = from + random(400_000);
    const painted: number[] = [];
    for (const { levels } of rows) levels.paint(from, to, 0, (record) => painted.push(record));
    const expected = all.flatMap(({ begin, took }, i) => (begin <= to && begin + took >= from ? [i] : []));
    expect(painted.sort((a, b) => a - b), `seed ${seed}`).toEqual(expected);
  }
});

test('a node stands for a stretch that its records lie in, by the longest of them', () => {
  const all = items(5000);
  const data = dataOf(all);
  for (const { levels } of makeRows(data, 'tenant')) {
    const covered: [number, number][] = [];
    levels.paint(0, 1e9, 30_000, (record, begin, end, marked, alone) => {
      expect(marked).toBe(false);
      expect(end - begin).toBeLessThanOrEqual(alone ? 9000 : 30_000);
      expect(data.beginNs[record]).toBeGreaterThanOrEqual(begin);
      covered.push([begin, end]);
    });
    for (const record of levels.items) {
      const begin = data.beginNs[record] as number;
      const end = begin + (data.tookNs[record] as number);
      expect(covered.some(([from, to]) => from <= begin && end <= to)).toBe(true);
      expect(levels.has(record)).toBe(true);
    }
    expect(levels.has(all.length)).toBe(false);
  }
});

test('records of a lane that overlap take rows of their own, up to four', () => {
  const at = (begin: number, took: number): Item => ({ begin, took, name: 0, lane: 0, place: 0 });
  const rowsOf = (all: Item[]): number[][] => makeRows(dataOf(all), 'stream').map(({ levels }) => [...levels.items]);
  expect(rowsOf([at(0, 10), at(10, 5), at(20, 5)])).toEqual([[0, 1, 2]]);
  expect(rowsOf([at(0, 10), at(5, 10), at(11, 2)])).toEqual([[0, 2], [1]]);
  expect(rowsOf(Array.from({ length: 9 }, (_, i) => at(i, 100)))).toHaveLength(4);
});

test('rows by stream and by tenant, and the waits of a device first', () => {
  const each = [0, 1, 2].map((lane) => ({ begin: 10 * lane, took: 5, name: lane, lane, place: 0 }));
  const data = dataOf(each);
  expect(makeRows(data, 'stream').map(({ label }) => label)).toEqual(['waited for', 'default stream', 'stream 3']);
  expect(makeRows(data, 'tenant').map(({ label }) => label)).toEqual(['waited for', 'no tenant', 'alice']);
});

test('sums of a stretch count each record once, by the part that lies in it', () => {
  const all = items(2000);
  const data = dataOf(all);
  const rows = makeRows(data, 'stream');
  const [from, to] = [1_000_000, 2_500_000];
  const expected = new Map<string, { count: number; total: number }>();
  for (const { begin, took, name } of all) {
    if (begin > to || begin + took < from) continue;
    const sum = expected.get(NAMES[name] as string) ?? { count: 0, total: 0 };
    sum.count++;
    sum.total += Math.min(begin + took, to) - Math.max(begin, from);
    expected.set(NAMES[name] as string, sum);
  }
  const actual = sums(data, rows, from, to);
  expect(new Map(actual.map(({ name, count, totalNs }) => [name, { count, total: totalNs }])), `seed ${seed}`).toEqual(expected);
  expect(actual.map(({ totalNs }) => totalNs)).toEqual(actual.map(({ totalNs }) => totalNs).sort((a, b) => b - a));
});

test('a search finds names and cells, and goes around the end', () => {
  const all = items(300);
  const data = dataOf(all);
  expect(searched(data, '  ')).toBeNull();
  const gemm = searched(data, 'GEMM')!;
  const cell = searched(data, 'in [4]')!;
  all.forEach(({ name, place }, i) => {
    expect(gemm(i)).toBe(name === 0);
    expect(cell(i)).toBe(place === 2);
  });
  const places = all.flatMap(({ name }, i) => (name === 0 ? [i] : []));
  expect(nextMatch(300, -1, 1, gemm)).toBe(places[0]);
  expect(nextMatch(300, places.at(-1) as number, 1, gemm)).toBe(places[0]);
  expect(nextMatch(300, places[0] as number, -1, gemm)).toBe(places.at(-1));
  expect(nextMatch(300, 0, 1, () => false)).toBe(-1);
  for (const { levels } of makeRows(data, 'stream')) {
    levels.mark(gemm);
    let marked = 0;
    levels.paint(0, 1e9, Infinity, (_record, _begin, _end, isMarked) => (marked += isMarked ? 1 : 0));
    expect(marked > 0).toBe([...levels.items].some((record) => gemm(record)));
  }
});

// The benchmark: what a frame costs is counted, since a busy machine changes times and no counts.
test('a frame of a million records costs what its width has', () => {
  const count = 1_000_000;
  const [width, rows] = [1280, 8];
  const columns = { beginNs: new Float64Array(count), tookNs: new Float64Array(count) };
  let now = 0;
  for (let i = 0; i < count; i++) {
    now += random(20) === 0 ? random(200_000) : random(3000); // bursts and pauses
    columns.beginNs[i] = now;
    columns.tookNs[i] = random(2500);
  }
  const all = Array.from({ length: rows }, (_, row) => new Levels(columns, Uint32Array.from({ length: count / rows }, (_, i) => rows * i + row)));
  for (const zoom of [1, 3, 10, 100, 1000, 10_000, 100_000]) {
    for (let round = 0; round < 5; round++) {
      const span = now / zoom;
      const from = (random(1000) / 1000) * (now - span);
      let painted = 0;
      let seen = 0;
      for (const levels of all) seen += levels.paint(from, from + span, span / width, () => painted++);
      // Of a row: nodes narrower than a pixel, whose parent is wider than one; 8 of those to a parent.
      expect(painted, `zoom ${zoom}, seed ${seed}`).toBeLessThanOrEqual(rows * width * 8);
      expect(seen, `zoom ${zoom}, seed ${seed}`).toBeLessThanOrEqual(rows * width * 12);
    }
  }
});
