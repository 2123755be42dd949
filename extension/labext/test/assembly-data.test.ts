// Listings and cards as the page reads them.

import type { JSONObject } from '@lumino/coreutils';
import { expect, it } from 'vitest';
import { facts, firstLines, parseAssembly } from '../src/assembly-data.js';

const ANSWER = {
  state: 'done',
  arch: 'sm_90a',
  card: { registers: 12, occupancy: 0.5, threads: 256, limiter: 'registers', local_bytes: 0, shared_bytes: 2048, copy: 91.26, fma: null },
  listings: {
    ptx: { lines: [[3, 'ld.global'], [0, 'ret;'], [3, 'st.global'], [4, 'add']], left: 2, problem: '' },
    sass: { lines: [], left: 0, problem: 'nvdisasm is not installed' },
  },
};

it('reads a listing, and which line of the source became which code', () => {
  const assembly = parseAssembly(ANSWER);
  expect(assembly?.listings.ptx.lines).toHaveLength(4);
  expect(assembly?.listings.ptx.left).toBe(2);
  expect(assembly?.listings.sass.problem).toBe('nvdisasm is not installed');
  expect([...firstLines(assembly?.listings.ptx.lines ?? [])]).toEqual([[3, 0], [4, 3]]);
});

it('waits while the kernel works, and refuses what it cannot read', () => {
  expect(parseAssembly({ state: 'working' })).toBeNull();
  const wrong: JSONObject[] = [{}, { state: 'done' }, { ...ANSWER, arch: 9 }, { ...ANSWER, card: [] }];
  for (const answer of wrong) {
    expect(() => parseAssembly(answer)).toThrow('cannot read');
  }
  const malformed = { ...ANSWER, listings: { ptx: { lines: [1, [2], [-3, 'a'], ['b', 'c'], null] }, sass: 4 } };
  expect(parseAssembly(malformed)?.listings.ptx.lines).toEqual([{ source: 0, text: 'a' }, { source: 0, text: 'c' }]);
  expect(parseAssembly(malformed)?.listings.sass.problem).toBe('The kernel sent no such listing.');
});

it('says what it does not know, and guesses nothing', () => {
  const values = Object.fromEntries(facts(ANSWER.card).map(({ name, value }) => [name, value]));
  expect(values).toEqual({
    Registers: '12',
    'Local memory': 'none',
    'Shared memory': '2,048 B',
    Occupancy: '50 %',
    'Memory rate': '91 %',
    'Arithmetic rate': 'not measured',
  });
  const unknown = facts({}).map(({ value }) => value);
  expect(unknown).toEqual(['not known', 'not known', 'not known', 'not known', 'not measured', 'not measured']);
});
