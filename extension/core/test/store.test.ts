// The store: records to memory map and tasks, snapshots, replays, losses, new sessions.

import { describe, expect, it } from 'vitest';
import { Phase } from '../src/phases.js';
import { Kind } from '../src/records.js';
import { Store } from '../src/store.js';
import { type FrameFields, encodeFrame } from './encode.js';

const MiB = 1 << 20;

function feed(store: Store, firstSeq: number, fields: FrameFields, timeNs = firstSeq * 1_000): void {
  store.receive({ type: 'frame' }, [encodeFrame(firstSeq, timeNs, fields)]);
}

const alloc = (address: number, more = {}): FrameFields => ({
  records: [{ kind: Kind.ALLOC, a: address, b: MiB, c: address, ...more }],
});

describe('Store', () => {
  it('shows gauges together with the sequence number of their GAUGE record', () => {
    const store = new Store();
    feed(store, 1, { gauges: [5, 10, 20, 0, 0, 0, 0, 0, 3, 4] });
    expect([store.gaugeSeq, store.gauges?.used, store.gauges?.reserved]).toEqual([1, 5, 10]);
    expect(store.history.length).toBe(1);
    expect(store.history.launches(0)).toBe(7);
  });

  it('keeps the memory map through allocation, eviction, restore and free', () => {
    const store = new Store();
    feed(store, 1, { records: [{ kind: Kind.SEGMENT_MAP, a: 4 * MiB, b: 2 * MiB, c: 2 * MiB }] });
    feed(store, 3, alloc(5 * MiB));
    feed(store, 5, alloc(4 * MiB, { name: 8, cell: 2, line: 7 }));
    expect(store.memory.byAddress.map((b) => b.address)).toEqual([4 * MiB, 5 * MiB]);
    expect(store.memory.segments).toEqual([[4 * MiB, 2 * MiB]]);
    expect(store.memory.byAddress[0]).toMatchObject({ name: 8, cell: 2, line: 7, resident: true });
    feed(store, 7, { records: [{ kind: Kind.EVICT, a: 4 * MiB }] });
    expect(store.memory.byAddress[0]?.resident).toBe(false);
    feed(store, 9, { records: [{ kind: Kind.RESTORE, a: 4 * MiB }] });
    expect(store.memory.byAddress[0]?.resident).toBe(true);
    feed(store, 11, { records: [{ kind: Kind.FREE, a: 4 * MiB }, { kind: Kind.SEGMENT_UNMAP, a: 4 * MiB }] });
    expect(store.memory.byAddress.map((b) => b.address)).toEqual([5 * MiB]);
    expect(store.memory.segments).toEqual([]);
  });

  it('takes a snapshot as the truth and skips the records it contains', () => {
    const store = new Store();
    feed(store, 1, alloc(1 * MiB));
    const rows = { blocks: [[2 * MiB, MiB, 2, 0, 0, 0, 0, 1]], segments: [[0, 8 * MiB]], tasks: [] };
    store.receive({ type: 'snapshot', seq: 50, device: 'sim', ...rows }, []);
    feed(store, 3, alloc(3 * MiB)); // older than the snapshot
    feed(store, 50, alloc(4 * MiB));
    expect(store.memory.byAddress.map((b) => b.address)).toEqual([2 * MiB, 4 * MiB]);
    expect(store.device).toBe('sim');
  });

  it('ignores malformed snapshots and rows', () => {
    const store = new Store();
    for (const junk of [null, 3, 'snapshot', {}, { type: 'snapshot' }, { type: 'snapshot', seq: 'x' }]) store.receive(junk, []);
    store.receive({ type: 'snapshot', seq: 1, blocks: [[1], 'x', [1, 2, 3, 4, 5, 6, 7, null]], tasks: [{}, 5], segments: 7 }, []);
    expect(store.memory.size).toBe(0);
    expect(store.fault).toBe('');
  });

  it('passes over records of kinds that it does not know', () => {
    const store = new Store();
    const records = [34, 35, 36, 999].map((kind) => ({ kind, a: MiB, b: 2, c: 3 }));
    feed(store, 1, { records: [...records, { kind: Kind.ALLOC, a: MiB, b: 1 }] });
    expect([store.fault, store.dropped, store.lost, store.tasks.all.length, store.memory.size]).toEqual(['', 0, 0, 0, 1]);
  });

  it('drops records and moments that it has seen', () => {
    const store = new Store();
    feed(store, 1, { gauges: [1], records: [{ kind: Kind.ALLOC, a: MiB, b: 1 }] });
    feed(store, 3, { gauges: [2], records: [{ kind: Kind.FREE, a: MiB }] });
    feed(store, 1, { gauges: [1], records: [{ kind: Kind.ALLOC, a: MiB, b: 1 }] });
    expect([store.gaugeSeq, store.gauges?.used, store.memory.size, store.history.length]).toEqual([4, 2, 0, 2]);
  });

  it('follows a task through its phases, with reason and spans', () => {
    const store = new Store();
    const step = (seq: number, from: number, to: number, reason = 0): void =>
      feed(store, seq, { records: [{ kind: Kind.TASK, t: seq, name: 3, a: 1, b: from * 256 + to, c: reason }], names: [[3, 'fit']] }, seq);
    step(1, Phase.Submitted, Phase.Queued, 33);
    expect(store.tasks.get(1)).toMatchObject({ phase: Phase.Queued, reason: 33 });
    step(3, Phase.Queued, Phase.Admitted);
    step(5, Phase.Admitted, Phase.Running);
    step(7, Phase.Running, Phase.Succeeded);
    const task = store.tasks.get(1);
    expect(task?.spans.map((s) => [s.phase, s.startNs, s.endNs])).toEqual([
      [Phase.Submitted, 1, 1],
      [Phase.Queued, 1, 3],
      [Phase.Admitted, 3, 5],
      [Phase.Running, 5, 7],
      [Phase.Succeeded, 7, 7],
    ]);
    expect(task && store.taskName(task)).toBe('fit');
    expect(store.tasks.countByPhase()[Phase.Succeeded]).toBe(1);
  });

  it('stays bounded under a flood of tasks and allocations', () => {
    const store = new Store();
    for (let n = 0; n < 14_000; n++) {
      feed(store, 1 + n * 2, { records: [{ kind: Kind.TASK, a: n, b: Phase.Submitted * 256 + Phase.Queued }] });
    }
    expect(store.tasks.all.length).toBe(12_000);
    for (let n = 0; n < 10_000; n++) feed(store, 30_001 + n, { gauges: [n] });
    expect(store.history.length).toBe(store.history.capacity);
    expect(store.history.used(store.history.length - 1)).toBe(9_999);
    expect(store.history.used(0)).toBe(10_000 - store.history.capacity);
  });

  it('starts again when the kernel is another process', () => {
    const store = new Store();
    feed(store, 100, { ...alloc(MiB), session: 1n });
    feed(store, 1, { session: 2n, gauges: [42] });
    expect([store.memory.size, store.gaugeSeq, store.gauges?.used, store.history.length]).toEqual([0, 1, 42, 1]);
  });

  it('stops at another version with one sentence', () => {
    const store = new Store();
    let calls = 0;
    store.subscribe(() => calls++);
    feed(store, 1, { version: 9 });
    expect(store.fault).toMatch(/version 9/);
    feed(store, 2, { gauges: [1] });
    expect([store.gaugeSeq, calls]).toEqual([0, 1]);
  });

  it('counts the records that never came', () => {
    const store = new Store();
    feed(store, 100, { gauges: [1] });
    expect(store.lost).toBe(0); // what was before the first frame is not missed
    feed(store, 101, { gauges: [2] });
    feed(store, 142, { gauges: [3] });
    expect(store.lost).toBe(40);
  });

  it('never throws, whatever the frame holds', () => {
    let state = 1;
    const next = (): number => (state = (state * 48271) % 2147483647) / 2147483647;
    const store = new Store();
    for (let round = 0; round < 3_000; round++) {
      const records = Array.from({ length: 5 }, () => ({
        kind: [1, 2, 3, 4, 5, 6, 32, 64, 80, 999][Math.floor(next() * 10)] ?? 0,
        a: Math.floor(next() * 2 ** 53),
        b: Math.floor(next() * 2 ** 53),
        c: Math.floor(next() * 2 ** 53),
        t: Math.floor(next() * 2 ** 53),
        name: Math.floor(next() * 2 ** 32),
      }));
      feed(store, Math.floor(next() * 2 ** 40), { session: BigInt(round % 3), records });
      for (const task of store.tasks.all) store.taskName(task);
      for (const block of store.memory.byAddress) store.placeOf(block.cell, block.line);
      expect(store.tasks.countByPhase().reduce((x, y) => x + y)).toBe(store.tasks.all.length);
    }
    expect(store.fault).toBe('');
  });

  it('says where an allocation was made', () => {
    const store = new Store();
    feed(store, 1, { records: [{ kind: Kind.CELL_BEGIN, a: 12, cell: 5 }] });
    expect([store.placeOf(5, 3), store.placeOf(5, 0), store.placeOf(6, 1), store.placeOf(0, 4)]).toEqual([
      'In [12], line 3',
      'In [12]',
      'a cell, line 1',
      '',
    ]);
  });

  it('computes launches per second over the last second', () => {
    const store = new Store();
    for (let i = 0; i <= 20; i++) feed(store, i + 1, { gauges: [0, 0, 0, 0, 0, 0, 0, 0, i * 50] }, 1 + i * 1e8);
    expect(store.history.launchRate(20)).toBeCloseTo(500, 6);
    expect(store.history.launchRate(0)).toBe(0);
  });
});
