// Colours of labels that come and go.

import { expect, it } from 'vitest';
import { Colours } from '../src/colours.js';

it('a label keeps its colour while it is shown, and a new one gets a colour that is the least in use', () => {
  const colours = new Colours(3);
  expect(['a', 'b', 'c', 'd'].map((label) => colours.of(label))).toEqual([0, 1, 2, 0]);
  colours.keep(new Set(['a', 'c', 'd']));
  expect(['e', 'd', 'c', 'a'].map((label) => colours.of(label))).toEqual([1, 0, 2, 0]);
});
