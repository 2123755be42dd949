// The recorder and the moving spectrogram in a plain page: a stand-in microphone, and every reason for which there is none.

import { type Page, expect, test } from '@playwright/test';
import { chromium } from '../support/chromium.ts';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

// Chromium's own stand-in: a beep every half second.
test.use({ launchOptions: { ...chromium.launchOptions, args: [...(chromium.launchOptions?.args ?? []), '--use-fake-device-for-media-stream'] } });
failOnPageErrors();

const RATE = 16000;

async function open(page: Page, address: string): Promise<void> {
  await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>sound</title>' }));
  await page.goto(address);
  await mount(page, 'recorder');
  await sendMessage(page, { type: 'state', rate: RATE, kept: 0 });
}

test('blocks come while it records, without a sample between them, and stop', async ({ page, context }) => {
  await context.grantPermissions(['microphone'], { origin: 'http://localhost' });
  await open(page, 'http://localhost/');
  await page.getByRole('button', { name: 'Record' }).click();
  await expect(panel(page)).toHaveAttribute('data-state', 'recording');
  await expect.poll(() => page.evaluate(() => window.blocks.length)).toBeGreaterThan(30);
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect(panel(page)).toHaveAttribute('data-state', 'ready');
  const { sizes, peak, count } = await page.evaluate(() => ({
    count: window.blocks.length,
    sizes: [...new Set(window.blocks.map(({ length }) => length))],
    peak: Math.max(...window.blocks.map((block) => block.reduce((most, value) => Math.max(most, Math.abs(value)), 0))),
  }));
  expect(sizes).toEqual([RATE / 20]);
  expect(peak).toBeGreaterThan(0.05);
  expect(await page.evaluate(() => window.sent)).toContainEqual({ type: 'stopped' });
  await page.waitForTimeout(300);
  expect(await page.evaluate(() => window.blocks.length)).toBe(count);
});

test('a microphone that is not allowed is said plainly, to the kernel too', async ({ page, context }) => {
  await context.clearPermissions();
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('denied', 'NotAllowedError'));
  });
  await open(page, 'http://localhost/');
  await page.getByRole('button', { name: 'Record' }).click();
  await expect(page.locator('.gk-sound-status')).toHaveText(/does not let this page use the microphone: allow it/);
  expect(await page.evaluate(() => window.sent)).toContainEqual(expect.objectContaining({ type: 'refused' }));
});

test('a missing microphone is said plainly', async ({ page }) => {
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('none', 'NotFoundError'));
  });
  await open(page, 'http://localhost/');
  await page.getByRole('button', { name: 'Record' }).click();
  await expect(page.locator('.gk-sound-status')).toHaveText('There is no microphone.');
});

test('a page that is neither HTTPS nor localhost says what it needs', async ({ page }) => {
  await open(page, 'http://notebooks.test/');
  await page.getByRole('button', { name: 'Record' }).click();
  await expect(page.locator('.gk-sound-status')).toHaveText(/HTTPS or localhost only/);
});

test('a spectrogram moves on by the columns that come, each once', async ({ page }) => {
  await mount(page, 'spectrogram');
  await page.evaluate(() => {
    const [rows, columns] = [8, 32];
    const bytes = (values: ArrayLike<number>): DataView[] => [new DataView(Uint8Array.from(values).buffer)];
    window.receiveBuffers({ type: 'state', rate: 16000, hop: 256, rows, columns }, bytes(Array.from({ length: 768 }, (_, i) => Math.floor(i / 3))));
    const column = (level: number): number[] => new Array<number>(rows).fill(level);
    window.receiveBuffers({ type: 'columns', end: 2 }, bytes([...column(10), ...column(20)]));
    window.receiveBuffers({ type: 'columns', end: 3 }, bytes([...column(10), ...column(20), ...column(250)])); // two of them again
  });
  await expect(panel(page)).toHaveAttribute('data-columns', '3');
  await expect(page.locator('.gk-message')).toBeHidden();
  const last = await page.locator('canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const context = canvas.getContext('2d');
    const [pixel, y] = [canvas.width / 32, 40];
    return [3.5, 2.5, 1.5, 0.5].map((back) => context?.getImageData(canvas.width - back * pixel, y, 1, 1).data[0]);
  });
  expect(last.slice(1)).toEqual([10, 20, 250]);
});
