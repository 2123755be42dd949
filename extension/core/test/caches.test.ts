// Blocks of KV caches: rows as the kernel sends them, and what is left out.

import { describe, expect, it } from 'vitest';
import { Store } from '../src/store.js';

const row = { cache: 'smollm2', holder: 'ann 3', blocks: 5, shared: 2, bytes: 5 << 20 };

describe('KV caches', () => {
  it('are what was told last, until a replay begins anew', () => {
    const store = new Store();
    const free = { ...row, holder: 'free', blocks: 9, shared: 0 };
    store.receive({ type: 'caches', rows: [row] }, []);
    store.receive({ type: 'caches', rows: [row, free] }, []);
    expect(store.caches).toEqual([row, free]);
    store.receive({ type: 'caches', rows: [] }, []);
    expect([store.caches, store.dropped]).toEqual([[], 0]);
    store.receive({ type: 'caches', rows: [row] }, []);
    store.receive({ type: 'replay', state: 'begins' }, []);
    expect(store.caches).toEqual([]);
  });

  it('lose rows of another shape, which are counted', () => {
    const store = new Store();
    const others = [null, [], { ...row, holder: 4 }, { ...row, blocks: 'x' }, { ...row, bytes: undefined }, { ...row, cache: null }];
    store.receive({ type: 'caches', rows: [...others, row] }, []);
    expect([store.caches, store.dropped]).toEqual([[row], others.length]);
    store.receive({ type: 'caches' }, []);
    expect([store.caches, store.dropped]).toEqual([[row], others.length + 1]);
  });
});
