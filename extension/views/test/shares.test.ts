// Who the share chart shows.

import { expect, it } from 'vitest';
import { Store } from '@pygpukit/core';
import { largest, tenantsOf } from '../src/scheduler/shares.js';

const S = 1e9;

it('a tenant that was idle for a minute makes room, and one with most is drawn', () => {
  const store = new Store();
  for (const name of ['a', 'b', 'c']) store.shares.add('host', name, 10 * S, S / 4);
  expect(tenantsOf(store).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  store.shares.add('host', 'd', 65 * S, S / 2);
  store.shares.add('host', 'a', 66 * S, S / 4);
  store.shares.advance(70 * S);
  const tenants = tenantsOf(store);
  expect(tenants.map(({ name }) => name)).toEqual(['a', 'd']);
  expect(largest(tenants, 1)).toEqual([{ name: 'd', promised: 0, achieved: 0.05 }]);
  expect(largest(tenants, 6)).toEqual(tenants);
});
