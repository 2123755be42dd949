// Colours of labels that come and go.

import { expect, it } from 'vitest';
import { Colours } from '../src/colours.js';

it('a label keeps its colour while it is shown, and a new one gets a colour that is the least in use', () => {
  const colours = new Colours(3, new Map());
  expect(['a', 'b', 'c', 'd'].map((label) => colours.of(label))).toEqual([0, 1, 2, 0]);
  colours.keep(new Set(['a', 'c', 'd']));
  expect(['e', 'd', 'c', 'a'].map((label) => colours.of(label))).toEqual([1, 0, 2, 0]);
});

it('a label has one colour in every view of the page, and again when it comes back', () => {
  const [one, other] = [new Colours(8), new Colours(8)];
  one.of('first');
  expect(other.of('second')).toBe(1);
  expect([other.of('first'), one.of('second')]).toEqual([0, 1]);
  one.keep(new Set());
  other.keep(new Set());
  expect([other.of('third'), one.of('second'), one.of('first')]).toEqual([0, 1, 0]);
});

it('of labels that nobody shows a number is remembered, not all', () => {
  const labels = new Map();
  const colours = new Colours(8, labels);
  for (let n = 0; n < 5000; n++) {
    colours.of(`task ${n}`);
    colours.keep(new Set([`task ${n}`]));
  }
  expect(labels.size).toBeLessThan(300);
  expect(labels.has('task 4999')).toBe(true);
});
