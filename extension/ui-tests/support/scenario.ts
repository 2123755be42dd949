// A minute of a plausible kernel as frames: arrays come and go, tasks queue, run, fail and wait for memory.

import { type FrameFields, type RecordFields, encodeFrame } from '../../core/test/encode.ts';

const MiB = 2 ** 20;
const BASE = 0x7f20_0000_0000;
const TICK_NS = 1e8;

const NAMES = ['weights', 'activations', 'x', 'y', 'audio.frames', 'kv cache', 'spectrogram', 'gradients', 'workspace'];
const TASK_NAMES = ['train step', 'resample', 'denoise', 'matmul sweep', 'inference: long prompt', 'fft batch', 'export'];
const [SUBMITTED, REJECTED, QUEUED, ADMITTED, RUNNING, SUCCEEDED, FAILED] = [0, 1, 2, 3, 4, 6, 7] as const;

export function* scenario(ticks = 600): Generator<DataView> {
  let seq = 1;
  let launches = 0;
  const blocks: { address: number; bytes: number; freeAt: number }[] = [];
  const names: [number, string][] = [...NAMES, ...TASK_NAMES].map((text, i) => [i + 1, text]);
  for (let tick = 0; tick < ticks; tick++) {
    const now = (tick + 1) * TICK_NS;
    const records: RecordFields[] = [];
    if (tick === 0) {
      for (let i = 0; i < 14; i++) records.push({ kind: 5, t: now, a: BASE + i * 8 * MiB, b: 8 * MiB, c: (i + 1) * 8 * MiB });
      records.push({ kind: 64, t: now, cell: 99, a: 7 });
    }
    for (const block of blocks.filter(({ freeAt }) => freeAt === tick)) records.push({ kind: 2, t: now, a: block.address });
    blocks.splice(0, blocks.length, ...blocks.filter(({ freeAt }) => freeAt > tick));
    if (tick % 2 === 0) {
      // Slots of 4 MiB, two a segment, taken in an order that leaves gaps.
      const slot = (tick * 3 + (tick >> 5)) % 28;
      const address = BASE + slot * 4 * MiB;
      if (!blocks.some((block) => block.address === address)) {
        const bytes = ([4, 1, 2.5, 4, 0.5, 3][(slot + tick) % 6] ?? 1) * MiB;
        blocks.push({ address, bytes, freeAt: tick + 30 + ((tick * 13) % 60) });
        const name = 1 + (((tick >> 1) * 5) % NAMES.length);
        records.push({ kind: 1, t: now, a: address, b: bytes, c: tick, name, cell: 99, line: 1 + (tick % 6) });
      }
    }
    records.push(...taskRecords(tick, now));
    launches += Math.round(40 + 30 * Math.sin(tick / 25) + (tick % 60 < 20 ? 90 : 0));
    const used = blocks.reduce((sum, { bytes }) => sum + bytes, 0);
    const running = 1 + (tick % 40 > 10 ? 1 : 0);
    const gauges = [used, 112 * MiB, 256 * MiB, 112 * MiB - used, 0, 78 * MiB, blocks.length, 14, launches, 0, 0, 0, 880 * MiB, 1024 * MiB, running, 1];
    const fields: FrameFields = { gauges, records, ...(tick === 0 ? { names } : {}) };
    yield encodeFrame(seq, now, fields);
    seq += records.length + 1;
  }
}

/** Task n is submitted at tick 50 n and goes its way. */
function taskRecords(tick: number, now: number): RecordFields[] {
  const records: RecordFields[] = [];
  const step = (n: number, from: number, to: number, reason = 0): void => {
    const name = NAMES.length + 1 + (n % TASK_NAMES.length);
    records.push({ kind: 32, t: now, name, a: n + 1, b: from * 256 + to, c: reason });
  };
  for (let n = 0; n < 12; n++) {
    const age = tick - 50 * n;
    if (age === 0) n === 5 ? step(n, SUBMITTED, REJECTED, 1) : step(n, SUBMITTED, QUEUED, n % 2 ? 33 : 0);
    if (n === 5) continue;
    if (age === 12 + 4 * n) step(n, QUEUED, ADMITTED);
    if (age === 14 + 4 * n) step(n, ADMITTED, RUNNING);
    if (age === 60 + 9 * n) step(n, RUNNING, n === 3 ? FAILED : SUCCEEDED, n === 3 ? 72 : 0);
  }
  return records;
}
