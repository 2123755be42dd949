// Sizes and the status bar's text.

import type { JSONObject } from '@lumino/coreutils';
import { expect, it } from 'vitest';
import { shortText, size } from '../src/feed.js';

it('writes sizes as the kernel does', () => {
  const cases: [number, string][] = [[0, '0 B'], [1023, '1023 B'], [1024, '1.0 KiB'], [1536, '1.5 KiB'], [4 << 20, '4.0 MiB'], [2 ** 50, '1024.0 TiB']];
  for (const [bytes, text] of cases) expect(size(bytes)).toBe(text);
});

it('shows the pool where there is one', () => {
  expect(shortText({ pool_used: 4096 })).toBe('GPU 4.0 KiB');
  const states: (JSONObject | undefined)[] = [undefined, {}, { backend: null }, { pool_used: 'x' }];
  for (const state of states) expect(shortText(state)).toBe('GPU');
});
