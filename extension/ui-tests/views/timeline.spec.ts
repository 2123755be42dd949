// The timeline of a profile: chunks are asked for and read, zoom, search, rows, selection, and what the device waited for.

import { type Page, expect, test } from '@playwright/test';
import { sendMessage } from '../support/plain-page.ts';
import { HEAD, RECORDS, SPAN_NS, beginTimeline, chunk, openTimeline } from '../support/timeline-page.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

failOnPageErrors();

const rows = (page: Page) => page.locator('.gk-details tbody tr');
const stretch = async (page: Page): Promise<[number, number]> => {
  const { from, to } = await panel(page).evaluate((element) => ({ ...(element as HTMLElement).dataset }));
  return [Number(from), Number(to)];
};

test('timeline: the records come in chunks, with their sums, and waits among them', async ({ page }) => {
  await openTimeline(page);
  expect(await page.evaluate(() => JSON.stringify(window.sent))).toBe('[{"type":"view"},{"type":"want","chunk":0}]');
  await expect(rows(page)).toHaveCount(4);
  await expect(rows(page).first()).toContainText(/waited for the host: nothing was submitted\s*1\s*600 us\s*600 us\s*600 us\s*60\.0 %/);
  await expect(rows(page).nth(1)).toContainText(/gemm\s*2\s*300 us\s*150 us\s*200 us\s*30\.0 %/);
  await expect(page.locator('.gk-timeline-label')).toHaveText(['waited for', 'default stream', 'stream 3']);
  await expect(page.locator('.gk-note').filter({ hasText: 'no time of their own' })).toBeVisible();
  await expect(rows(page).filter({ hasText: '<img src=x' })).toHaveCount(1); // as text
});

test('timeline: rows by tenant', async ({ page }) => {
  await openTimeline(page);
  await page.getByLabel('Rows by').selectOption('tenant');
  await expect(page.locator('.gk-timeline-label')).toHaveText(['waited for', 'no tenant', 'alice']);
});

test('timeline: keys and the wheel zoom and move, and Home shows all', async ({ page }) => {
  await openTimeline(page);
  await expect.poll(() => stretch(page)).toEqual([0, SPAN_NS]);
  const canvas = page.locator('.gk-timeline canvas');
  await canvas.focus();
  await page.keyboard.press('+');
  await expect.poll(async () => (await stretch(page))[1] - (await stretch(page))[0]).toBeLessThan(SPAN_NS * 0.7);
  const [before] = await stretch(page);
  await page.keyboard.press('ArrowRight');
  await expect.poll(async () => (await stretch(page))[0]).toBeGreaterThan(before);
  await page.keyboard.press('Home');
  await expect.poll(() => stretch(page)).toEqual([0, SPAN_NS]);
  await canvas.dispatchEvent('wheel', { deltaY: -240, ctrlKey: true, bubbles: true, cancelable: true });
  await expect.poll(async () => (await stretch(page))[1] - (await stretch(page))[0]).toBe(SPAN_NS / 2);
  await canvas.dispatchEvent('wheel', { deltaY: -240, bubbles: true, cancelable: true }); // the page's
  await page.getByRole('button', { name: 'Whole' }).click();
  await expect.poll(() => stretch(page)).toEqual([0, SPAN_NS]);
});

test('timeline: a drag sums up the stretch that it selects, and a click tells of a record', async ({ page }) => {
  await openTimeline(page);
  const canvas = page.locator('.gk-timeline canvas');
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + 0.25 * box.width, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.75 * box.width, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await expect(page.locator('.gk-note').filter({ hasText: 'Selected: 500' })).toBeVisible();
  await expect(rows(page)).toHaveCount(1); // the wait alone
  await expect(rows(page).first()).toContainText(/100\.0 %/);
  await canvas.click({ position: { x: 0.5 * box.width, y: 10 } });
  await expect(page.locator('.gk-timeline-chosen')).toHaveText(/^the host: nothing was submitted: 600 us at 200 us \u00b7 device 0 waited \u00b7 memory was mapped 2 times \u00b7 then In \[4\], line 2$/);
  await canvas.click({ position: { x: 0.85 * box.width, y: 30 } });
  await expect(page.locator('.gk-timeline-chosen')).toHaveText(/^gemm: 100 us at 800 us \u00b7 stream 0 of device 0 \u00b7 In \[4\], line 2$/);
  await canvas.focus();
  await page.keyboard.press('Escape');
  await expect(rows(page)).toHaveCount(4);
});

test('timeline: a search counts, marks, and goes from one to the next', async ({ page }) => {
  await openTimeline(page);
  const search = page.getByLabel('Find a name or a cell');
  await search.fill('GEMM');
  await expect(page.getByText('2 found')).toBeVisible();
  await search.press('Enter');
  await expect(page.locator('.gk-timeline-chosen')).toHaveText(/^gemm: 200 us at 0/);
  await search.press('Enter');
  await expect(page.locator('.gk-timeline-chosen')).toHaveText(/^gemm: 100 us at 800 us/);
  await search.press('Shift+Enter');
  await expect(page.locator('.gk-timeline-chosen')).toHaveText(/^gemm: 200 us at 0/);
  await search.fill('in [4]');
  await expect(page.getByText('2 found')).toBeVisible();
});

test('timeline: bytes that are none are told of, and the view goes with its element', async ({ page }) => {
  await beginTimeline(page);
  await page.evaluate(() => window.receive({ type: 'works', chunk: 0 }, btoa('nothing')));
  await expect(panel(page).locator('.gk-message')).toHaveText(/^The timeline cannot be read: /);
  await page.evaluate(() => window.unmount());
  await expect(panel(page)).toHaveCount(0);
});

test('timeline: where there is no profile it says so, and another one takes the place of the first', async ({ page }) => {
  await beginTimeline(page);
  await sendMessage(page, { type: 'none', text: 'No profile has ended yet.' });
  await expect(panel(page).locator('.gk-message')).toHaveText('No profile has ended yet.');
  await sendMessage(page, { ...HEAD, count: RECORDS.length });
  await expect.poll(() => page.evaluate(() => JSON.stringify(window.sent))).toContain('"want","chunk":0');
  await page.evaluate((data) => window.receive({ type: 'works', chunk: 0 }, data), chunk(RECORDS));
  await expect(rows(page)).toHaveCount(4);
  await page.getByLabel('Find a name or a cell').fill('gemm');
  await page.evaluate(() => window.sent.splice(0));
  await sendMessage(page, { type: 'ended' });
  expect(await page.evaluate(() => JSON.stringify(window.sent))).toBe('[{"type":"view"}]');
  await page.evaluate((data) => window.receive({ type: 'works', chunk: 0 }, data), chunk(RECORDS)); // of the first: nobody takes it
  await sendMessage(page, { ...HEAD, count: 2, names: ['gemm', 'second'] });
  await page.evaluate((data) => window.receive({ type: 'works', chunk: 0 }, data), chunk([[0, 10_000, 0, 0, 1], [500_000, 20_000, 1, 0, 3]]));
  await expect(panel(page).locator('.gk-device')).toHaveText('2 records in 1.0 ms');
  await expect(page.getByText('1 found')).toBeVisible();
  await expect(rows(page)).toHaveCount(2);
});
