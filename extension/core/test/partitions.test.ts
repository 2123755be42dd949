// Partitions, contexts, and what a page counts of messages that it cannot read.

import { describe, expect, it } from 'vitest';
import { QUEUED_AFTER_MS, Store } from '../src/index.js';

describe('partitions', () => {
  it('are what the kernel told last, and rows of another shape are left out', () => {
    const store = new Store();
    const serving = { id: 'serving', sharePpm: 300_000, usedPpm: 0 };
    store.receive({ type: 'partitions', rows: [serving, null, { ...serving, sharePpm: Number.NaN }, { ...serving, id: 3 }] }, []);
    expect(store.partitions).toEqual([serving]);
    store.receive({ type: 'partitions', rows: 'none' }, []);
    expect(store.partitions).toEqual([serving]);
    store.receive({ type: 'partitions', rows: [] }, []);
    expect(store.partitions).toEqual([]);
  });
});

describe('contexts', () => {
  const S = 1e9;
  const chat = { number: 7, name: 'chat', sharePpm: 700_000, memoryBytes: 0, gpuNs: 9 * S };

  it('are tenants: what one gets from its first report on counts as its share', () => {
    const store = new Store();
    store.receive({ type: 'contexts', tNs: 10 * S, rows: [chat, null, { ...chat, gpuNs: '3' }] }, []);
    expect([store.contexts, store.dropped, store.shares.tenants]).toEqual([[chat], 2, []]);
    const later = { ...chat, gpuNs: 9.25 * S };
    store.receive({ type: 'contexts', tNs: 10.5 * S, rows: [later] }, []);
    store.shares.advance(11 * S);
    expect([store.shares.tenants, store.shares.share('chat', 1)]).toEqual([['chat'], 0.25]);
    store.receive({ type: 'contexts', tNs: 11 * S, rows: [] }, []);
    expect(store.contexts).toEqual([]);
  });

  it('of one name are told apart by number', () => {
    const store = new Store();
    store.receive({ type: 'contexts', tNs: 10 * S, rows: [chat] }, []);
    store.receive({ type: 'contexts', tNs: 10.5 * S, rows: [{ ...chat, number: 8, gpuNs: 20 * S }] }, []);
    expect(store.shares.tenants).toEqual([]);
  });
});

describe('what cannot be read', () => {
  const nothings = [null, 3, '', [], {}, Number.NaN, [[null]], { rows: null }, 'x'.repeat(1e6)];
  const row = { number: 1, name: 'a', phase: 'Running', submittedNs: 1, startedNs: 1, finishedNs: 0 };

  it('is counted where its kind is known, row by row, and ignored where a newer kernel may mean something', () => {
    const store = new Store();
    for (const type of ['tasks', 'names', 'cells', 'partitions', 'contexts', 'device', 'snapshot']) store.receive({ type, rows: 3, seq: 'x' }, []);
    expect(store.dropped).toBe(7);
    store.receive({ type: 'tasks', tNs: 1, rows: [...nothings, row, { ...row, paced: Number.NaN }, { ...row, more: 1 }] }, []);
    expect([store.dropped, store.tasks.all.length]).toEqual([7 + nothings.length + 1, 1]);
    for (const content of [...nothings, { type: 'tomorrow', rows: [1] }, { type: 4 }]) store.receive(content, []);
    expect([store.dropped, store.fault]).toEqual([7 + nothings.length + 1, '']);
  });

  it('does not stop what follows, in a flood either', () => {
    const store = new Store();
    for (let i = 0; i < 20_000; i++) store.receive({ type: 'tasks', tNs: i, rows: [null] }, []);
    store.receive({ type: 'tasks', tNs: 1, rows: [row] }, []);
    expect([store.dropped, store.tasks.all.length]).toEqual([20_000, 1]);
  });
});

describe('a control that waits', () => {
  it('says so early enough to be read within 200 ms', () => {
    expect(QUEUED_AFTER_MS).toBeLessThan(180); // a frame at 60 Hz remains
  });
});
