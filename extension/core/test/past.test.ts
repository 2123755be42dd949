// What stays of the past: promises as steps, shares over gaps and from what the kernel noted, and a replay that begins again.

import { describe, expect, it } from 'vitest';
import { Kind, Phase, Store, promisedSteps } from '../src/index.js';
import { encodeFrame } from './encode.js';

const S = 1e9;
const row = (number: number, more: object = {}): object => ({
  ...{ number, name: `t${number}`, phase: 'Running', submittedNs: S, startedNs: 2 * S, finishedNs: 0 },
  ...more,
});
const tell = (store: Store, tNs: number, ...rows: object[]): void => store.receive({ type: 'tasks', tNs, rows }, []);
const frame = (store: Store, seq: number, tNs: number, records: object[] = []): void =>
  store.receive({ type: 'frame' }, [encodeFrame(seq, tNs, { records: records as never, names: [[1, 'a'], [2, 'b']] })]);
const step = (t: number, task: number, from: number, to: number, name = 1): object => ({ kind: Kind.TASK, t, a: task, name, b: from * 256 + to });
const steps = (store: Store, fromNs = 0): Record<string, [number, number][]> =>
  Object.fromEntries(
    [...promisedSteps(store.tasks.all, (task) => store.taskName(task), store.contextPromises, fromNs)].map(([name, all]) => [name, all.map(({ fromNs: at, share }) => [at / S, share])]),
  );

describe('promises', () => {
  it('hold from admission to the end, through a pause, and are kept afterwards', () => {
    const store = new Store();
    const { Queued, Admitted, Running, Suspended, Succeeded } = Phase;
    frame(store, 1, 9 * S, [step(S, 1, 0, Queued), step(2 * S, 1, Queued, Admitted), step(3 * S, 1, Admitted, Running), step(4 * S, 1, Running, Suspended), step(6 * S, 1, Suspended, Running), step(8 * S, 1, Running, Succeeded)]);
    tell(store, 9 * S, row(1, { name: 'a', phase: 'Succeeded', sharePpm: 300_000, finishedNs: 8 * S }));
    expect(steps(store)).toEqual({ a: [[2, 0.3], [8, 0]] });
    expect(steps(store, 8.5 * S)).toEqual({});
  });

  it('change when a share is changed, and add up for a tenant', () => {
    const store = new Store();
    tell(store, 3 * S, row(1, { name: 'a', sharePpm: 100_000 }), row(2, { name: 'a', sharePpm: 200_000, startedNs: 4 * S }));
    tell(store, 7 * S, row(1, { name: 'a', sharePpm: 500_000 }));
    tell(store, 8 * S, row(3, { name: 'b' }));
    expect(steps(store)).toEqual({ a: [[2, 0.1], [4, 0.3], [7, 0.7]] });
  });

  it('of contexts are steps from report to report', () => {
    const store = new Store();
    const chat = { number: 7, name: 'chat', sharePpm: 400_000, memoryBytes: 0, gpuNs: 0 };
    const report = (t: number, ...rows: object[]): void => store.receive({ type: 'contexts', tNs: t * S, rows }, []);
    report(1, chat);
    report(2, { ...chat, gpuNs: 5 });
    report(3, { ...chat, sharePpm: 600_000 });
    report(5);
    expect(steps(store)).toEqual({ chat: [[1, 0.4], [3, 0.6], [5, 0]] });
  });
});

describe('shares of the past', () => {
  const seen = (store: Store, seconds: readonly number[], name = 'a'): number[] => seconds.map((second) => store.shares.shareIn(name, second));

  it('are unknown where nobody looked, and what a task had in the gap is not put at its end', () => {
    const store = new Store();
    tell(store, 1.5 * S, row(1, { name: 'a', gpuNs: 0 }));
    frame(store, 1, 2 * S);
    tell(store, 2.5 * S, row(1, { name: 'a', gpuNs: S / 4 }));
    const snapshot = { type: 'snapshot', seq: 2, tNs: 20 * S, device: '', blocks: [], segments: [], tasks: [row(1, { name: 'a', gpuNs: 9 * S })] };
    store.receive(snapshot, []);
    frame(store, 2, 20.1 * S);
    tell(store, 20.5 * S, row(1, { name: 'a', gpuNs: 9.25 * S }));
    expect(seen(store, [2, 10, 19, 20])).toEqual([0.25, NaN, NaN, 0.25]);
  });

  it('come from what the kernel noted, and seconds that were seen are not counted twice', () => {
    const store = new Store();
    frame(store, 1, 2 * S);
    tell(store, 2.5 * S, row(1, { name: 'a', gpuNs: 0 }));
    tell(store, 3 * S, row(1, { name: 'a', gpuNs: S / 2 }));
    const rows = [[2.5 * S, 1.5 * S, [['a', S]]], [4 * S, S, [['a', S / 4]]], [5 * S, S, []], [7 * S, 2 * S, [['b', S]]], 'bad', [1, 2, [['a']]]];
    store.receive({ type: 'past', rows }, []);
    expect(seen(store, [1, 2, 3, 4, 5, 6])).toEqual([2 / 3, 0.5, 0.25, 0, 0, 0]);
    expect(seen(store, [5, 6, 7], 'b')).toEqual([0.5, 0.5, NaN]);
    expect(store.dropped).toBe(2);
  });

  it('come in before what was seen first', () => {
    const store = new Store();
    frame(store, 1, 8 * S);
    store.receive({ type: 'past', rows: [[3 * S, S, [['a', S / 2]]], [6 * S, S, []]] }, []);
    expect(seen(store, [2, 3, 5, 8])).toEqual([0.5, NaN, 0, 0]);
  });
});

describe('a replay', () => {
  it('that is looked at again fills the memory map again', () => {
    const store = new Store();
    const play = (): void => {
      store.receive({ type: 'replay', state: 'begins' }, []);
      store.receive({ type: 'snapshot', seq: 1, device: '', blocks: [], segments: [[4096, 4096]], tasks: [] }, []);
      frame(store, 1, S, [{ kind: Kind.ALLOC, a: 4096, b: 64, c: 1 }]);
    };
    play();
    store.receive({ type: 'replay', state: 'ended' }, []);
    expect([store.memory.size, store.replay]).toEqual([1, 'ended']);
    play();
    expect([store.memory.size, store.replay, store.history.length]).toEqual([1, 'begins', 1]);
  });

  it('of an unknown state is dropped', () => {
    const store = new Store();
    store.receive({ type: 'replay', state: 'jumps' }, []);
    expect([store.replay, store.dropped]).toEqual([null, 1]);
  });
});
