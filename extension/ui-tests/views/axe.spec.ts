// axe-core on every dashboard, light and dark, with its tables open: no serious and no critical violation.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';
import { mount, playTrace, sendFrames } from '../support/plain-page.ts';
import { scenario } from '../support/scenario.ts';

const TRACE = join(import.meta.dirname, '../../../notebooks/data/dashboards.pgktrace');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const CONTROLS = { actions: ['cancel', 'pause', 'resume', 'pause_task', 'resume_task', 'quota', 'share', 'priority', 'trim'] };

declare const axe: { run(where: string, options: RunOptions): Promise<AxeResults> };

for (const colorScheme of ['light', 'dark'] as const) {
  for (const name of ['memory', 'scheduler', 'device', 'cells'] as const) {
    test(`${name}, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await mount(page, name, { controls: CONTROLS });
      if (name === 'memory' || name === 'scheduler') await sendFrames(page, scenario(480));
      else await playTrace(page, TRACE);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
      await expect(page.locator('.gk-table tbody tr').first()).toBeVisible();
      expect(await page.locator('.gk-panel').evaluate((node) => node.classList.contains('gk-dark'))).toBe(colorScheme === 'dark');
      await page.evaluate(AXE);
      const { violations, passes } = await page.evaluate(() => axe.run('.gk-panel', { resultTypes: ['violations', 'passes'] }));
      const found = violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
      expect(passes.map(({ id }) => id)).toContain('color-contrast');
      expect(found).toEqual([]);
    });
  }
}
