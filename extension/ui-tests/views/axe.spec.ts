// axe-core on what is for sound and on every dashboard with its tables open, light, dark, and in a lab whose theme is not the system's: no serious and no critical violation.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';
import { mount, playTrace, sendFrames, sendMessage } from '../support/plain-page.ts';
import { giveSound } from '../support/stub-sound.ts';
import { scenario } from '../support/scenario.ts';
import { CONTROLS, TRACE } from '../support/views.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

declare const axe: { run(where: string, options: RunOptions): Promise<AxeResults> };

/** What has to be there before it is looked at; else a row of a table. */
const SEEN: Readonly<Record<string, string>> = { player: '.gk-note', recorder: '.gk-play', spectrogram: '.gk-canvas' };

/** The system's preference, and the lab's variables that go before it, as its dark theme has them. */
const THEMES = {
  light: { colorScheme: 'light', lab: {}, dark: false },
  dark: { colorScheme: 'dark', lab: {}, dark: true },
  'JupyterLab Dark': { colorScheme: 'light', lab: { '--jp-layout-color1': '#212121', '--jp-ui-font-color1': 'rgba(255, 255, 255, 0.87)' }, dark: true },
} as const;

for (const [theme, { colorScheme, lab, dark }] of Object.entries(THEMES)) {
  for (const name of ['memory', 'scheduler', 'device', 'cells', 'player', 'recorder', 'spectrogram'] as const) {
    test(`${name}, ${theme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await mount(page, name, { controls: CONTROLS });
      await page.evaluate((variables) => Object.entries(variables).forEach(([key, value]) => document.documentElement.style.setProperty(key, value)), lab);
      if (name === 'memory' || name === 'scheduler') await sendFrames(page, scenario(480));
      else if (name === 'player') await giveSound(page, { rate: 22050, frames: 44100, note: 'The peak is 2.' });
      else if (name === 'recorder') await sendMessage(page, { type: 'state', rate: 16000, kept: 8000 });
      else if (name === 'spectrogram') await sendMessage(page, { type: 'state', rate: 16000, hop: 256, rows: 8, columns: 32 });
      else await playTrace(page, TRACE);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
      await expect(page.locator(SEEN[name] ?? '.gk-table tbody tr').first()).toBeVisible();
      await expect.poll(() => page.locator('.gk-panel').evaluate((node) => node.classList.contains('gk-dark'))).toBe(dark);
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
