// The samples of a sound that streams: whatever comes when, every sample is played once, in order.

import { describe, expect, it } from 'vitest';
import { BLOCK, Chunks, Pace, type Piece, Queue, hasTime } from '../src/index.js';

const RATE = 44100;
const TIMING = { ahead: 8820, lead: 1024, longest: 4096 };

/** Numbers that are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What is there when so many samples have come. */
const upTo = (arrived: number) => (from: number, most: number): number => Math.max(0, Math.min(most, arrived - from));
const ramp = (from: number, count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => from + i);

describe('Chunks', () => {
  it('gives back what came in any order, twice, and over the bounds of blocks', () => {
    const random = numbers(1);
    const chunks = new Chunks(1);
    const total = 5 * BLOCK + 77;
    let known = 0;
    while (known < total) {
      const at = random(2) === 0 ? known : random(known + 1);
      const count = Math.min(1 + random(BLOCK), total - at);
      chunks.add(at, ramp(at, count));
      known = Math.max(known, at + count);
      expect(chunks.available(0, total)).toBe(known);
    }
    const from = random(total);
    expect(chunks.read(from, total - from)[0]).toEqual(ramp(from, total - from));
  });

  it('keeps channels apart', () => {
    const chunks = new Chunks(2);
    chunks.add(BLOCK - 2, Float32Array.of(1, 2, 3, 4, -1, -2, -3, -4));
    chunks.add(0, new Float32Array(2 * (BLOCK - 2)));
    chunks.add(BLOCK - 2, Float32Array.of(1, 2, 3, 4, -1, -2, -3, -4));
    expect(chunks.read(BLOCK - 2, 4).map((channel) => [...channel])).toEqual([[1, 2, 3, 4], [-1, -2, -3, -4]]);
  });

  it('has nothing of what comes behind a hole in its block, and asks for it', () => {
    const chunks = new Chunks(1);
    chunks.add(10, ramp(10, 5));
    expect(chunks.available(0, 100)).toBe(0);
    expect(chunks.available(10, 100)).toBe(0);
    chunks.add(0, ramp(0, 10));
    expect(chunks.available(0, 100)).toBe(10);
    expect(chunks.available(4, 3)).toBe(3);
  });

  it('forgets what was used longest ago', () => {
    const chunks = new Chunks(1, 2 * BLOCK);
    for (let block = 0; block < 4; block++) chunks.add(block * BLOCK, ramp(block * BLOCK, BLOCK));
    expect(chunks.available(0, 1)).toBe(0);
    expect(chunks.available(2 * BLOCK, 5 * BLOCK)).toBe(2 * BLOCK);
  });
});

describe('Queue', () => {
  it('plays every sample once, in order and without a gap, while chunks come with jitter', () => {
    const random = numbers(2);
    for (let round = 0; round < 20; round++) {
      const queue = new Queue(RATE, TIMING, 0);
      const pieces: Piece[] = [];
      let arrived = 4 * 4410;
      const end = 60 * RATE;
      for (let now = 0; now < end; now += 441 + random(2000)) {
        arrived = Math.min(end, Math.max(arrived, now + 8820 + random(20_000)));
        pieces.push(...queue.take(now, upTo(arrived), end));
      }
      expect(queue.gaps).toBe(0);
      for (const [i, piece] of pieces.entries()) {
        const before = pieces[i - 1];
        expect(piece.from).toBe(before ? before.from + before.count : 0);
        if (before) expect(piece.at).toBe(before.at + before.count);
        expect(hasTime(piece.at, RATE)).toBe(true);
      }
      expect(queue.next).toBeGreaterThan(end - 2 * TIMING.ahead);
    }
  });

  it('waits in silence for what is late, and loses nothing of it', () => {
    const queue = new Queue(RATE, TIMING, 100);
    const [first] = queue.take(0, upTo(150));
    expect(first?.from).toBe(100);
    expect(queue.take(5000, upTo(150))).toEqual([]);
    expect(queue.heard(5000)).toBe(queue.next);
    const [second] = queue.take(9000, upTo(200));
    expect(second?.from).toBe((first?.from ?? 0) + (first?.count ?? 0));
    expect(second?.at).toBeGreaterThanOrEqual(9000 + TIMING.lead);
    expect(queue.gaps).toBe(1);
  });

  it('says what is heard now', () => {
    const queue = new Queue(48000, TIMING, 1000);
    expect(queue.heard(0)).toBe(1000);
    const [piece] = queue.take(0, upTo(5000), 5000);
    expect(queue.heard(0)).toBe(1000);
    expect(queue.heard((piece?.at ?? 0) + 10)).toBe(1010);
    expect(queue.silent((piece?.at ?? 0) + 3999)).toBe(false);
    expect(queue.silent((piece?.at ?? 0) + 4000)).toBe(true);
  });

  it('takes the last samples of a sound whatever their time is', () => {
    for (let end = 1; end < 200; end++) {
      const pieces = new Queue(RATE, TIMING, 0).take(0, upTo(end), end);
      expect(pieces.reduce((sum, { count }) => sum + count, 0)).toBe(end);
    }
  });
});

describe('Pace', () => {
  it('lets a burst through at once, and then so much in a second', () => {
    const pace = new Pace(100, 300);
    expect([1, 2, 3, 4].map(() => pace.take(100, 5))).toEqual([true, true, true, false]);
    expect(pace.take(100, 5.5)).toBe(false);
    expect(pace.take(100, 6)).toBe(true);
    expect(pace.take(400, 1000)).toBe(false);
  });
});
