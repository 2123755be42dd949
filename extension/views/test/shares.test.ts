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

const running = (number: number, name: string, share: number, shortfall: string): object => ({ number, name, phase: 'Running', submittedNs: S, startedNs: 2 * S, finishedNs: 0, sharePpm: 300_000, share, shortfall });

it('share and reason are those that the kernel measured of one span, not a mean of this page with a reason of another', () => {
  const store = new Store();
  const latest = (toS: number, follows?: boolean): unknown =>
    tenantsOf(store, store.tasks.all, { fromNs: 0, toNs: toS * S }, follows).map(({ name, achieved, shortfall }) => [name, achieved, shortfall]);
  for (const name of ['a', 'b']) store.shares.add('device', name, 4 * S, S);
  store.receive({ type: 'tasks', tNs: 4 * S, rows: [running(1, 'a', 0.1, 'not asked for'), running(2, 'b', 0.25, 'promise broken')] }, []);
  expect(latest(4)).toEqual([['a', 0.1, 'not asked for'], ['b', 0.25, 'promise broken']]);
  // Two of one name run together; one that ended before them says nothing of now.
  const over = { ...running(3, 'a', 0, 'held by its limit'), phase: 'Succeeded', finishedNs: 3 * S };
  store.receive({ type: 'tasks', tNs: 5 * S, rows: [over, running(4, 'a', 0.3, '')] }, []);
  expect(latest(5)).toEqual([['a', 0.4, 'not asked for'], ['b', 0.25, 'promise broken']]);
  // Of a stretch that was chosen, what is said of now is not said.
  store.receive({ type: 'tasks', tNs: 30 * S, rows: [{ ...running(2, 'b', 0.2, 'promise broken'), phase: 'Succeeded', finishedNs: 20 * S }] }, []);
  expect(latest(25, false)).toEqual([['a', 0.5, ''], ['b', 0.2, 'promise broken']]);
});
