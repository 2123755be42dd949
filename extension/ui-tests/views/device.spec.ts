// The device view: a field without a value says why.

import { expect, test } from '@playwright/test';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

failOnPageErrors();

test('device: each field has a value or its reason', async ({ page }) => {
  await mount(page, 'device');
  await expect(panel(page)).toHaveAttribute('data-state', 'waiting');
  const fields = [
    { key: 'gpu_utilization', label: 'GPU busy', value: 61, unit: '%', note: '' },
    { key: 'memory_used', label: 'Memory used', value: 3 * 2 ** 30, unit: 'B', note: 'of 8.0 GiB' },
    { key: 'power', label: 'Power', value: null, unit: 'W', note: 'Not Supported' },
  ];
  await sendMessage(page, { type: 'device', tNs: 1e9, source: 'NVML, driver 570.1', fields, processes: [[7, '<b>python</b>', -1]] });
  const field = (key: string) => page.locator(`[data-field="${key}"]`);
  await expect(field('gpu_utilization')).toContainText('61 %');
  await expect(field('memory_used')).toContainText('3 GiB');
  await expect(field('power')).toContainText('not availableNot Supported');
  await page.getByText('Processes on the device').click();
  await expect(page.locator('details', { hasText: 'Processes' }).locator('tbody tr')).toContainText(/7\s*<b>python<\/b>\s*not told/);
  await expect(page.locator('b')).toHaveCount(0);
});

test('device: what holds for every field is said once', async ({ page }) => {
  await mount(page, 'device');
  const source = 'the device is simulated: it has no sensors';
  const fields = ['GPU busy', 'Power', 'Temperature'].map((label) => ({ key: label, label, value: null, unit: '%', note: source }));
  await sendMessage(page, { type: 'device', tNs: 1e9, source, fields, processes: [] });
  await expect(page.locator('.gk-device-grid .gk-value')).toHaveText(['not available', 'not available', 'not available']);
  await expect(page.locator('.gk-body').getByText(source).filter({ visible: true })).toHaveCount(1);
});
