// The scheduler view beside its Gantt chart: shares of tenants and contexts, tables, and whom a key is for.

import { expect, test } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { mount, sendFrame, sendMessage } from '../support/plain-page.ts';
import { threeTasks } from '../support/three-tasks.ts';
import { failOnPageErrors, panel, play } from '../support/views.ts';

const MiB = 2 ** 20;

failOnPageErrors();

test('scheduler: phases, states and reasons are text', async ({ page }) => {
  await mount(page, 'scheduler');
  await play(page, 480);
  await expect(page.locator('.gk-phases li[data-phase="Rejected"]')).toHaveAttribute('data-count', '1');
  await expect(page.locator('.gk-phases li[data-phase="Failed"]')).toHaveAttribute('data-count', '1');
  const states = page.locator('.gk-lane-states li');
  await expect(states.filter({ hasText: 'Rejected: exceeds the device' })).toHaveCount(1);
  await expect(states.filter({ hasText: 'Failed: raised an error' })).toHaveCount(1);
  await expect(states.filter({ hasText: /^Succeeded in \d/ })).not.toHaveCount(0);
});

test('contexts are tenants with a promised and an achieved share, without a task, too', async ({ page }) => {
  await mount(page, 'scheduler');
  await sendFrame(page, encodeFrame(1, 10e9, { records: [{ kind: 80, t: 10e9 }] }));
  const chat = { number: 7, name: 'chat', sharePpm: 700_000, memoryBytes: MiB, gpuNs: 0 };
  await sendMessage(page, { type: 'contexts', tNs: 10e9, rows: [chat, { ...chat, number: 8, name: 'speech', sharePpm: 0 }] });
  await sendMessage(page, { type: 'contexts', tNs: 11e9, rows: [{ ...chat, gpuNs: 5e8 }] });
  await sendFrame(page, encodeFrame(2, 11.5e9, { records: [{ kind: 80, t: 11.5e9 }] }));
  await expect(panel(page)).toHaveAttribute('data-contexts', '1');
  await expect(page.locator('.gk-gantt')).toBeHidden();
  await expect(page.locator('.gk-legend-wide li')).toHaveText(['chat50 %, promised 70 %']);
  await threeTasks(page);
  await expect(page.locator('.gk-gantt')).toBeVisible();
  await expect(page.locator('.gk-legend-wide .gk-label')).toHaveText(['train']); // those seconds are before the context's
});

test('shares: what is said of one tenant lies on no other', async ({ page }) => {
  await page.setViewportSize({ width: 560, height: 900 });
  await mount(page, 'scheduler');
  await sendFrame(page, encodeFrame(1, 10e9, { records: [{ kind: 80, t: 10e9 }] }));
  const rows = ['writer', 'adviser'].map((name, i) => ({ number: i + 1, name, sharePpm: 700_000, memoryBytes: MiB, gpuNs: 0, share: 0.3, shortfall: 'the host is too slow' }));
  await sendMessage(page, { type: 'contexts', tNs: 10e9, rows });
  await sendMessage(page, { type: 'contexts', tNs: 11e9, rows: rows.map((row) => ({ ...row, gpuNs: 3e8 })) });
  await sendFrame(page, encodeFrame(2, 11.5e9, { records: [{ kind: 80, t: 11.5e9 }] }));
  await expect(page.locator('.gk-legend-wide li')).toHaveCount(2);
  await expect(page.locator('.gk-legend-wide')).toContainText('the host is too slow');
  const over = await page.locator('.gk-legend-wide li').evaluateAll((items) => items.map((item) => item.scrollWidth > item.clientWidth));
  expect(over).toEqual([false, false]);
});

test('shares: what is achieved and why it is less are of one span, as the kernel measured it', async ({ page }) => {
  await mount(page, 'scheduler');
  await sendFrame(page, encodeFrame(1, 10e9, { records: [{ kind: 80, t: 10e9 }] }));
  // It ran for two seconds: over the ten that a page has of it, it would have a fifth of its share.
  const row = { number: 1, name: 'train', phase: 'Running', submittedNs: 6e9, startedNs: 8e9, finishedNs: 0, sharePpm: 700_000, gpuNs: 1.2e9, share: 0.6, shortfall: 'the host is too slow' };
  const serve = { ...row, number: 2, name: 'serve', sharePpm: 300_000, share: 0.31, shortfall: '' };
  await sendMessage(page, { type: 'tasks', tNs: 10e9, rows: [row, serve] });
  await sendFrame(page, encodeFrame(2, 10.5e9, { records: [{ kind: 80, t: 10.5e9 }] }));
  const tenants = page.locator('.gk-legend-wide li');
  await expect(tenants).toHaveText(['train60 %, promised 70 %: the host is too slow', 'serve31 %, promised 30 %']);
  // Long after its end the same is said of the same seconds.
  await sendMessage(page, { type: 'tasks', tNs: 11e9, rows: [row, serve].map((one) => ({ ...one, phase: 'Succeeded', finishedNs: 10.5e9 })) });
  await sendFrame(page, encodeFrame(3, 60e9, { records: [{ kind: 80, t: 60e9 }] }));
  await expect(tenants).toHaveText(['train60 %, promised 70 %: the host is too slow', 'serve31 %, promised 30 %']);
});

test('shares: of many tenants the largest are drawn, and tables say where they end', async ({ page }) => {
  await mount(page, 'scheduler');
  const tenants = Array.from({ length: 8 }, (_, n) => n + 1);
  const records = tenants.map((name) => ({ kind: 17, t: 9.5e9, a: name * 1e7, tenant: name, stream: 1 }));
  const tasks = Array.from({ length: 201 }, (_, n) => ({ kind: 32, t: 9.6e9, a: n + 1, name: 1, b: 2 }));
  const names = tenants.map((name): [number, string] => [name, `t${name}`]);
  await sendFrame(page, encodeFrame(1, 11e9, { records: [...records, ...tasks], names }));
  await expect(page.locator('.gk-legend-wide .gk-label')).toHaveText(['t3', 't4', 't5', 't6', 't7', 't8', '2 more']);
  const table = (name: string) => page.locator('details', { hasText: name });
  for (const name of ['Shares as a table', 'Tasks as a table']) await page.getByText(name).click();
  await expect(table('Shares as a table').locator('tbody tr')).toHaveCount(8);
  await expect(table('Shares as a table')).not.toContainText('the first');
  await expect(table('Tasks as a table').locator('tbody tr')).toHaveCount(200);
  await expect(table('Tasks as a table')).toContainText('the first 200 of 201');
});

test('shares: names of tenants are whole where there is room, and on hover where there is none', async ({ page }) => {
  await page.setViewportSize({ width: 480, height: 900 });
  await mount(page, 'scheduler');
  const long = 'a tenant whose name is longer than any line of the legend could ever be, and goes on';
  const names: [number, string][] = [[1, 'inference'], [2, 'export'], [3, 'fine-tuning'], [4, long]];
  const records = names.flatMap(([name]) => [
    { kind: 32, t: 1e9, a: name, name, b: 4 },
    { kind: 17, t: 2e9, a: 1e8, tenant: name, stream: name },
  ]);
  await sendFrame(page, encodeFrame(1, 3e9, { records, names }));
  const labels = page.locator('.gk-legend-wide .gk-label');
  await expect(labels).toHaveText(names.map(([, name]) => name));
  const cut = await labels.evaluateAll((all) => all.map((node) => node.scrollWidth > node.clientWidth));
  expect(cut).toEqual([false, false, false, true]);
  await expect(labels.last()).toHaveAttribute('title', long);
  await page.getByText('Shares as a table').click();
  await expect(page.locator('td', { hasText: long }).first()).toHaveAttribute('title', long);
});

test('scheduler: shares, latencies and log are tables too', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  for (const summary of await page.locator('.gk-details summary').all()) await summary.click();
  const table = (name: string) => page.locator('details', { hasText: name }).locator('tbody tr');
  await expect(table('Shares as a table').first()).toContainText(/train\s*50 %/);
  await expect(table('Latencies as a table')).toContainText(['waited', 'ran']);
  await expect(table('Queue and admission log')).toHaveCount(5);
  await expect(table('Queue and admission log').filter({ hasText: 'Queuedwaiting for memory' })).toHaveCount(1);
});

test('a plain key is for what has the focus in a view, and does not reach the lab; one with Ctrl does, and Shift+Enter', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    document.addEventListener('keydown', ({ key }) => heard.push(key)); // as the lab does
  });
  const choice = page.getByLabel('One lane for each');
  await choice.focus();
  for (const key of ['ArrowDown', 's', 'x', 'Control+s', 'Shift+Enter']) await page.keyboard.press(key);
  await expect(choice).toHaveValue('stream');
  const heard = (): Promise<string[]> => page.evaluate(() => (window as unknown as { heard: string[] }).heard);
  expect(await heard()).toEqual(['Control', 's', 'Enter']);
  await page.getByText('Tasks as a table').focus();
  await page.keyboard.press('Enter');
  await page.locator('.gk-scroll[aria-label="Tasks as a table"]').focus();
  await page.keyboard.press('ArrowDown');
  expect(await heard()).toHaveLength(3);
});

test('shares: a promise is a line of steps that stays after the end, and where nobody looked there is a gap', async ({ page }) => {
  await mount(page, 'scheduler');
  const step = (t: number, from: number, to: number) => ({ kind: 32, t, a: 1, name: 1, b: from * 256 + to });
  const records = [step(2e9, 0, 4), step(6e9, 4, 6)];
  await sendFrame(page, encodeFrame(1, 8e9, { records, names: [[1, 'train']] }));
  const row = { number: 1, id: 'a', name: 'train', phase: 'Succeeded', submittedNs: 2e9, startedNs: 2e9, finishedNs: 6e9, sharePpm: 500_000, gpuNs: 0 };
  await sendMessage(page, { type: 'tasks', tNs: 8e9, rows: [row] });
  await sendMessage(page, { type: 'past', rows: [[3e9, 1e9, [['train', 4e8]]], [6e9, 1e9, [['train', 4e8]]]] });
  await expect(page.locator('[data-steps]')).toHaveAttribute('data-steps', '2');
  await expect(page.locator('.gk-legend-wide li')).toHaveText([/train.*promised 50 %/]);
  const seen = (): Promise<object> => page.locator('.gk-timed canvas').nth(1).evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const { fromNs = 0, toNs = 1 } = Object.fromEntries(Object.entries((document.querySelector('.gk-panel') as HTMLElement).dataset).map(([key, value]) => [key, Number(value)]));
    const style = getComputedStyle(document.querySelector('.gk-panel') as HTMLElement);
    const rgb = (name: string): number[] => {
      const hex = style.getPropertyValue(name).trim();
      return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    };
    const column = (atNs: number): number[][] => {
      const x = Math.min(canvas.width - 1, Math.round(((atNs - fromNs) / (toNs - fromNs)) * canvas.width));
      const { data } = canvas.getContext('2d')!.getImageData(x, 0, 1, canvas.height);
      return Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
    };
    // A line between two rows of pixels has a part of its colour in each.
    const near = (one: number[], other: number[], by: number): boolean => one.every((value, i) => Math.abs(value - (other[i] ?? 0)) <= by);
    const has = (atNs: number, colour: number[], by = 0): boolean => [0, 2e7, 4e7, 6e7].some((more) => column(atNs + more).some((pixel) => near(pixel, colour, by)));
    return { promised: has(4.4e9, rgb('--gk-owner-0'), 60), gap: has(4.4e9, rgb('--gk-well')), known: has(2.5e9, rgb('--gk-well')) };
  });
  await expect.poll(seen).toEqual({ promised: true, gap: true, known: false });
});
