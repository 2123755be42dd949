// Who the share chart shows: whoever was busy or promised something in the window, of the chosen scheduler.

import { expect, it } from 'vitest';
import { Store } from '@pygpukit/core';
import { largest, tenantsOf } from '../src/scheduler/shares.js';

const S = 1e9;

it('a tenant that was idle in the window is left out, and one with most is drawn', () => {
  const store = new Store();
  for (const name of ['a', 'b', 'c']) store.shares.add('host', name, 10 * S, S / 4);
  const named = (fromS: number, toS: number): string[] => tenantsOf(store, store.tasks.all, { fromNs: fromS * S, toNs: toS * S }).map(({ name }) => name);
  store.shares.add('host', 'd', 65 * S, S / 2);
  store.shares.add('host', 'a', 66 * S, S / 4);
  store.shares.advance(70 * S);
  expect([named(5, 12), named(60, 70), named(30, 50)]).toEqual([['a', 'b', 'c'], ['a', 'd'], []]);
  const tenants = tenantsOf(store, store.tasks.all, { fromNs: 60 * S, toNs: 70 * S });
  expect(largest(tenants, 1)).toEqual([{ name: 'd', promised: 0, achieved: expect.closeTo(1 / 6) as number, steps: [], shortfall: '' }]);
  expect(largest(tenants, 6)).toEqual(tenants);
});

it('a tenant keeps its promise in the window after its end, and one that was promised nothing has none', () => {
  const store = new Store();
  const row = { number: 1, name: 'a', phase: 'Succeeded', submittedNs: S, startedNs: 2 * S, finishedNs: 8 * S, sharePpm: 300_000 };
  store.receive({ type: 'tasks', tNs: 9 * S, rows: [row, { ...row, number: 2, name: 'b', sharePpm: 0 }] }, []);
  const window = (fromS: number, toS: number): unknown => tenantsOf(store, store.tasks.all, { fromNs: fromS * S, toNs: toS * S }).map(({ name, promised }) => [name, promised]);
  expect([window(0, 9), window(7, 60), window(9, 60)]).toEqual([[['a', 0.3]], [['a', 0.3]], []]);
});
