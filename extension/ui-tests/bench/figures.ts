// Where the benchmark's parts put their figures: one JSON object, merged into the file that PYGPUKIT_UI_REPORT names.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

export function report(name: string, figures: Readonly<Record<string, number | string>>): void {
  const path = process.env['PYGPUKIT_UI_REPORT'];
  if (!path) throw new Error('set PYGPUKIT_UI_REPORT to the file that the figures go to, or run tools/ui_benchmark.py');
  const whole = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : {};
  writeFileSync(path, `${JSON.stringify({ ...whole, [name]: figures }, null, 2)}\n`);
  console.info(name, JSON.stringify(figures));
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((x, y) => x - y);
  return Number((sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0).toFixed(2));
}

/** What pairs of measurements (milliseconds) say about their difference. */
export function added(name: string, more: readonly number[], less: readonly number[]): Record<string, number> {
  return {
    [`${name}_with_p50_ms`]: percentile(more, 0.5),
    [`${name}_without_p50_ms`]: percentile(less, 0.5),
    ...median(`${name}_added`, differences(more, less)),
  };
}

export function differences(more: readonly number[], less: readonly number[]): number[] {
  return more.map((one, at) => one - (less[at] ?? NaN));
}

/** The median of values (milliseconds), and what holds it with at least 95 % (sign test). */
export function median(name: string, values: readonly number[]): Record<string, number> {
  const sorted = [...values].sort((x, y) => x - y);
  const beyond = outside(sorted.length);
  const at = (index: number): number => Number((sorted.at(index) ?? NaN).toFixed(2));
  return { [`${name}_p50_ms`]: percentile(sorted, 0.5), [`${name}_low_ms`]: at(beyond), [`${name}_high_ms`]: at(-1 - beyond) };
}

/** How many of the smallest, and of the largest, of n values lie outside the 95 % interval of their median. */
function outside(n: number): number {
  let [count, term, below] = [0, 0.5 ** n, 0]; // of the binomial distribution: n draws, one half
  while (2 * (below += term) <= 0.05) {
    count++;
    term *= (n - count + 1) / count;
  }
  if (!count) throw new Error(`An interval of 95 % needs six pairs or more; there are ${n}.`);
  return count - 1;
}
