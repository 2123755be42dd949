// Sizes and the status bar's text.

import type { JSONObject } from '@lumino/coreutils';
import { expect, it } from 'vitest';
import { shortText, size } from '../src/feed.js';

it('writes sizes as the kernel does', () => {
  const cases: [number, string][] = [[0, '0 B'], [1023, '1023 B'], [1024, '1.0 KiB'], [1536, '1.5 KiB'], [4 << 20, '4.0 MiB'], [2 ** 50, '1024.0 TiB']];
  for (const [bytes, text] of cases) expect(size(bytes)).toBe(text);
});

it('shows what the kernel knows, and nothing that it does not', () => {
  const pool = { pool_used: 4096, launches: 2, host_launches: 1 };
  expect(shortText(pool)).toBe('GPU 4.0 KiB, 3 launches');
  expect(shortText({ ...pool, launches: 0 })).toBe('GPU 4.0 KiB, 1 launch');
  expect(shortText({ ...pool, gpu_utilization: 61, temperature: 57 })).toBe('GPU 61 %, 57 \u00b0C, 4.0 KiB, 3 launches');
  expect(shortText({ ...pool, temperature: 0 })).toBe('GPU 0 \u00b0C, 4.0 KiB, 3 launches');
  const states: (JSONObject | undefined)[] = [undefined, {}, { backend: null }, { pool_used: 'x', temperature: null }];
  for (const state of states) expect(shortText(state)).toBe('GPU');
});
