// The lab extension as a whole is within its budget.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';

const STATIC = join(import.meta.dirname, '../../../pygpukit.data/data/share/jupyter/labextensions/pygpukit/static');
const BUDGET_BYTES = 400_000;

test('all its scripts together are at most 400 kB', () => {
  const scripts = readdirSync(STATIC).filter((name) => name.endsWith('.js'));
  const total = scripts.reduce((sum, name) => sum + readFileSync(join(STATIC, name)).length, 0);
  expect(total).toBeGreaterThan(10_000);
  expect(total).toBeLessThanOrEqual(BUDGET_BYTES);
});
