// The frame decoder: every field, every refusal, and arbitrary bytes.

import { describe, expect, it } from 'vitest';
import { FrameError, decodeFrame } from '../src/frame.js';
import { Kind } from '../src/records.js';
import { encodeFrame } from './encode.js';

function sample(): DataView {
  return encodeFrame(10, 5_000, {
    session: 0xfedcba9876543210n,
    lost: 3,
    gauges: Array.from({ length: 16 }, (_, i) => 2 ** 40 + i),
    records: [
      { kind: Kind.ALLOC, t: 4_000, tenant: 1, name: 2, a: 0x7f00_0000_1200, b: 512, c: 9, cell: 4, line: 3 },
      { kind: Kind.FREE, t: 4_500, a: 1, b: 2, c: 3 },
    ],
    names: [
      [1, 'tenant'],
      [2, 'x'],
      [3, ''],
      [4, 'Gr\u00fc\u00dfe \ud83d\ude80'],
    ],
  });
}

/** Deterministic bytes: mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

describe('decodeFrame', () => {
  it('reads every field', () => {
    const frame = decodeFrame(sample());
    expect(frame.session).toBe(0xfedcba9876543210n);
    expect([frame.firstSeq, frame.nextSeq, frame.lost, frame.timeNs, frame.gaugeSeq]).toEqual([10, 13, 3, 5_000, 12]);
    expect(Object.values(frame.gauges)).toEqual(Array.from({ length: 16 }, (_, i) => 2 ** 40 + i));
    expect([...frame.names]).toEqual([
      [1, 'tenant'],
      [2, 'x'],
      [3, ''],
      [4, 'Gr\u00fc\u00dfe \ud83d\ude80'],
    ]);
    const { records } = frame;
    expect(records.count).toBe(3);
    expect([records.seq(0), records.timeNs(0), records.kind(0)]).toEqual([10, 4_000, Kind.ALLOC]);
    expect([records.tenant(0), records.name(0), records.cell(0), records.line(0)]).toEqual([1, 2, 4, 3]);
    expect([records.a(0), records.b(0), records.c(0)]).toEqual([0x7f00_0000_1200, 512, 9]);
    expect([records.seq(2), records.kind(2), records.a(2)]).toEqual([12, Kind.GAUGE, 2 ** 40]);
  });

  it('reads a frame that starts anywhere in its buffer', () => {
    const bytes = new Uint8Array(sample().buffer);
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(decodeFrame(new DataView(shifted.buffer, 3)).gaugeSeq).toBe(12);
  });

  it('refuses another version with one sentence that names both', () => {
    expect(() => decodeFrame(encodeFrame(1, 1, { version: 2 }))).toThrow(/version 2 .*version 1.*restart the kernel/);
  });

  it('refuses what is no frame, and frames cut at any byte', () => {
    const bytes = new Uint8Array(sample().buffer);
    expect(() => decodeFrame(new DataView(new ArrayBuffer(64)))).toThrow(FrameError);
    for (let end = 0; end < bytes.length; end++) {
      expect(() => decodeFrame(new DataView(bytes.buffer, 0, end)), `cut at ${end}`).toThrow(FrameError);
    }
  });

  it('refuses a count that the bytes cannot hold', () => {
    for (const at of [12, 192 + 3 * 64]) {
      const view = sample();
      view.setUint32(at, 0xffffffff, true);
      expect(() => decodeFrame(view)).toThrow(FrameError);
    }
  });

  it('throws FrameError or succeeds on 20000 mutated and random frames', () => {
    const next = random(1);
    const whole = new Uint8Array(sample().buffer);
    let decoded = 0;
    for (let round = 0; round < 20_000; round++) {
      const bytes = round % 2 ? whole.slice() : Uint8Array.from({ length: Math.floor(next() * 300) }, () => next() * 256);
      // Half of the random ones get a right magic and version, so that the fuzz reaches past the header.
      if (round % 4 === 0) bytes.set(whole.subarray(0, Math.min(12, bytes.length)));
      for (let flips = 0; flips < 4; flips++) bytes[Math.floor(next() * bytes.length)] = next() * 256;
      try {
        const { records } = decodeFrame(new DataView(bytes.buffer));
        for (let i = 0; i < records.count; i++) records.seq(i);
        decoded++;
      } catch (error) {
        expect(error).toBeInstanceOf(FrameError);
      }
    }
    expect(decoded).toBeGreaterThan(1_000); // else the fuzz only tested the header
  });
});
