// The links view: a matrix of devices, with bytes a second from one report to the next.

import { expect, test } from '@playwright/test';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

failOnPageErrors();

const link = (from: number, to: number, directBytes: number, hostBytes = 0) => ({
  from, to, kind: hostBytes > 0 ? 'host' : 'nvlink', lanes: hostBytes > 0 ? 0 : 18, bytesPerS: hostBytes > 0 ? 0 : 478e9, directBytes, hostBytes,
});

test('links: bytes a second between two reports stand in the matrix', async ({ page }) => {
  await mount(page, 'links');
  await expect(panel(page)).toHaveAttribute('data-state', 'waiting');
  await sendMessage(page, { type: 'links', tNs: 1e9, rows: [link(0, 1, 0), link(1, 0, 0, 1000)] });
  await expect(page.locator('[data-link="0>1"]')).toHaveAttribute('data-rate', '0');
  await sendMessage(page, { type: 'links', tNs: 3e9, rows: [link(0, 1, 2 ** 31), link(1, 0, 0, 1000)] });
  await expect(page.locator('[data-link="0>1"]')).toHaveAttribute('data-rate', String(2 ** 30));
  await expect(page.locator('[data-link="0>1"]')).toContainText('1 GiB/s of');
  await expect(page.locator('[data-link="0>1"]')).toContainText('18 nvlink');
  await expect(page.locator('[data-link="1>0"]')).toContainText('by way of the host');
  await expect(page.locator('[data-link="0>0"]')).toHaveText('-');
  await expect(page.locator('.gk-links thead th')).toHaveText(['', 'to 0', 'to 1']);
});

test('links: rows of another shape are left out, and hostile texts stay texts', async ({ page }) => {
  await mount(page, 'links');
  const rows = [{ ...link(0, 1, 5), kind: '<img src=x onerror=alert(1)>' }, { from: 0, to: 'x' }, null];
  await sendMessage(page, { type: 'links', tNs: 1e9, rows });
  await expect(panel(page)).toHaveAttribute('data-links', '1');
  await expect(page.locator('[data-link="0>1"]')).toContainText('<img');
  await expect(page.locator('img')).toHaveCount(0);
});
