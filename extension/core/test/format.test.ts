// Formatting: units, rounding, grouping.

import { describe, expect, it } from 'vitest';
import * as format from '../src/format.js';

describe('format', () => {
  it('writes bytes in binary units with at most three places', () => {
    const cases: [number, string][] = [
      [0, '0 B'],
      [1023, '1023 B'],
      [1024, '1 KiB'],
      [1536, '1.50 KiB'],
      [10.25 * 2 ** 20, '10.3 MiB'],
      [512 * 2 ** 20, '512 MiB'],
      [139.7 * 2 ** 30, '140 GiB'],
      [2 ** 60, '1 EiB'],
    ];
    for (const [bytes, text] of cases) expect(format.bytes(bytes)).toBe(text);
    expect([format.bytesParts(3 * 2 ** 20), format.bytesParts(500)]).toEqual([
      ['3.00', 'MiB'],
      ['500', 'B'],
    ]);
  });

  it('writes counts, rates and durations', () => {
    expect([format.count(0), format.count(999), format.count(1234567)]).toEqual(['0', '999', '1,234,567']);
    expect([format.rate(0), format.rate(12.34), format.rate(5000), format.rate(56789), format.rate(2.5e6)]).toEqual([
      '0', '12.3', '5,000', '56.8 k', '2.5 M',
    ]);
    expect([format.duration(12), format.duration(1500), format.duration(2.5e6), format.duration(9e9), format.duration(9e10)]).toEqual([
      '12 ns', '1.5 us', '2.5 ms', '9.0 s', '1.5 min',
    ]);
    expect([format.percent(1, 0), format.percent(1, 50), format.percent(1, 2)]).toEqual(['', '2.0 %', '50 %']);
    expect([format.isUnlimited(2 ** 64), format.isUnlimited(2 ** 40)]).toEqual([true, false]);
  });
});
