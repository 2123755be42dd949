// What the kernel says about a cell: read defensively, and put on the right characters.

import { expect, it } from 'vitest';
import { findings, range } from '../src/finding.js';

const at = (text: string, column: number): string => {
  const { from, to } = range(text, column);
  return text.slice(from, to);
};

it('takes the word at a column, else one character, else the line', () => {
  expect(at('    x[0] = undefined_name;', 12)).toBe('undefined_name');
  expect(at('    x[0] = 1', 6)).toBe('[');
  expect(at('  a = b  ', 0)).toBe('a = b');
  expect(at('  a = b', 99)).toBe('a = b');
  expect(at('', 1)).toBe('');
  expect(range('   ', 0)).toEqual({ from: 0, to: 3 });
});

it('counts characters, not UTF-16 units', () => {
  expect(at('/* \u{1d6fc}\u{1d6fd} */ beta', 10)).toBe('beta');
});

it('stays inside any line', () => {
  for (const text of ['', ' ', 'a', '\ud83d\ude00', '\t(x)']) {
    for (let column = 0; column < 8; column++) {
      const { from, to } = range(text, column);
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeGreaterThanOrEqual(from);
      expect(to).toBeLessThanOrEqual(text.length);
    }
  }
});

it('leaves out what has another shape', () => {
  const good = { line: 2, column: 3, severity: 'error', message: 'm' };
  expect(findings([good])).toEqual([good]);
  expect(findings([{ ...good, severity: 'note' }])[0]?.severity).toBe('info');
  const bad = [null, 1, 'x', [], {}, { ...good, line: -1 }, { ...good, column: 1.5 }, { ...good, message: 4 }, { ...good, line: 2 ** 60 }];
  expect(findings(bad)).toEqual([]);
  for (const data of [null, 'x', 3, {}, undefined]) expect(findings(data)).toEqual([]);
});
