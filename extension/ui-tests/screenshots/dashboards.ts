// The four dashboards on recorded and made-up data, light, dark and narrow: docs/images/dashboard-NAME-LOOK.png.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { type ModuleName, mount, playTrace, sendFrame, sendMessage } from '../support/plain-page.ts';
import { scenario } from '../support/scenario.ts';

const ROOT = join(import.meta.dirname, '../../..');
const IMAGES = join(ROOT, 'docs/images');
const TRACE = join(ROOT, 'notebooks/data/dashboards.pgktrace');
const LOOKS = { light: { width: 960, scheme: 'light' }, dark: { width: 960, scheme: 'dark' }, narrow: { width: 420, scheme: 'light' } } as const;
const FIELDS: readonly [string, string, number | null, string, string][] = [
  ['gpu_utilization', 'GPU busy', 61, '%', ''],
  ['memory_utilization', 'Memory busy', 17, '%', ''],
  ['memory_used', 'Memory used', 3 * 2 ** 30, 'B', 'of 8.0 GiB'],
  ['sm_clock', 'SM clock', 1410, 'MHz', 'at most 1980'],
  ['power', 'Power', 312.5, 'W', 'of 700'],
  ['temperature', 'Temperature', 57, '\u00b0C', ''],
  ['throttle', 'Throttled by', 1, '', 'power cap'],
  ['pcie_sent', 'PCIe sent', null, 'B/s', 'Not Supported'],
];

for (const name of ['memory', 'scheduler', 'device', 'cells'] as const satisfies ModuleName[]) {
  for (const [look, { width, scheme }] of Object.entries(LOOKS)) {
    test(`${name}, ${look}`, async ({ page }) => {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      await mount(page, name, { controls: { actions: ['cancel', 'pause', 'resume', 'pause_task', 'resume_task', 'quota', 'share', 'priority', 'trim'] } });
      await page.evaluate((dark) => (document.body.style.background = dark ? '#111' : '#fff'), scheme === 'dark');
      if (name === 'memory') for (const frame of scenario(500)) await sendFrame(page, frame);
      else await playTrace(page, TRACE);
      for (let i = 0; name === 'device' && i < 100; i++) {
        const fields = FIELDS.map(([key, label, value, unit, note]) => ({ key, label, unit, note, value: value !== null && unit === '%' ? value + 15 * Math.sin(i / 9) : value }));
        const processes = [[4711, 'python', 2 ** 31]];
        await sendMessage(page, { type: 'device', tNs: i * 1e9, source: 'NVML, driver 570.1', fields, processes });
      }
      await page.evaluate(() => document.querySelectorAll<HTMLDetailsElement>('.gk-details').forEach((node) => (node.open = true)));
      await page.waitForTimeout(150);
      mkdirSync(IMAGES, { recursive: true });
      await page.locator('.gk-panel').screenshot({ path: join(IMAGES, `dashboard-${name}-${look}.png`) });
    });
  }
}
