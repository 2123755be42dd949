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
