import { expect, test } from 'vitest';
import { added } from './figures.ts';

const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => n - at);

test('the median of pairs lies in the interval that tables of the sign test give', () => {
  for (const [pairs, low, high] of [[6, 1, 6], [8, 1, 8], [9, 2, 8], [15, 4, 12], [20, 6, 15], [25, 8, 18]] as const) {
    const figure = added('x', upTo(pairs), Array(pairs).fill(0));
    expect([figure['x_added_low_ms'], figure['x_added_high_ms']]).toEqual([low, high]);
  }
});

test('differences are taken pair by pair', () => {
  const figure = added('x', [10, 20, 30, 40, 50, 60], [9, 18, 27, 36, 45, 54]);
  expect(figure).toEqual({ x_with_p50_ms: 30, x_without_p50_ms: 27, x_added_p50_ms: 3, x_added_low_ms: 1, x_added_high_ms: 6 });
});

test('fewer than six pairs say nothing', () => {
  expect(() => added('x', upTo(5), upTo(5))).toThrow('six pairs or more; there are 5');
});
