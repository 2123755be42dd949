// What the dashboards do, each behaviour in the built bundles in a plain page: Gantt, controls, map, strip, ledger, replay.

import { join } from 'node:path';
import { type Page, expect, test } from '@playwright/test';
import { type FrameFields, encodeFrame } from '../../core/test/encode.ts';
import { type ModuleName, mount, playTrace, sendFrame, sendMessage } from '../support/plain-page.ts';

const TRACE = join(import.meta.dirname, '../../../notebooks/data/dashboards.pgktrace');
const MiB = 2 ** 20;
const BASE = 0x7f00_0000_0000;
const CONTROLS = { actions: ['cancel', 'pause', 'resume', 'pause_task', 'resume_task', 'quota', 'share', 'priority', 'trim'] };
const panel = (page: Page) => page.locator('.gk-panel');
const data = async (page: Page, key: string): Promise<number> => Number(await page.locator('[data-span-ns]').getAttribute(`data-${key}`));

test.beforeEach(({ page }) => {
  page.on('pageerror', (error) => {
    throw error;
  });
});

/** Three tasks of two tenants: one waits for memory, one runs, one that ran is paused; with their facts. */
async function threeTasks(page: Page): Promise<void> {
  const names: [number, string][] = [[1, 'train'], [2, 'serve']];
  const task = (t: number, a: number, name: number, from: number, to: number, c = 0) => ({ kind: 32, t, a, name, b: from * 256 + to, c });
  const records = [
    task(1e9, 1, 1, 0, 3),
    task(1.1e9, 1, 1, 3, 4),
    { kind: 17, t: 1.5e9, a: 2e8, tenant: 1, stream: 4 },
    task(1.2e9, 2, 2, 0, 2, 33),
    task(1.2e9, 3, 1, 0, 4),
    task(2e9, 3, 1, 4, 5),
  ];
  await sendFrame(page, encodeFrame(1, 3e9, { gauges: [MiB, MiB, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], records, names }));
  const facts = (number: number, phase: string, more: object) => ({
    ...{ number, id: `id${number}`, name: number === 2 ? 'serve' : 'train', phase, submittedNs: 1e9, startedNs: number === 2 ? 0 : 1.1e9, finishedNs: 0 },
    ...more,
  });
  const rows = [
    facts(1, 'Running', { policy: 'Guaranteed', sharePpm: 500_000, priority: 2, memoryBytes: MiB, gpuNs: 0, paced: 0 }),
    facts(2, 'Queued', { policy: 'BestEffort', detail: 'asked 100, available 7' }),
    facts(3, 'Suspended', { policy: 'Burstable' }),
  ];
  await sendMessage(page, { type: 'tasks', tNs: 3e9, rows });
  await expect(panel(page)).toHaveAttribute('data-tasks', '3');
}

test('Gantt: lanes by task, tenant and stream', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const names = page.locator('.gk-lane-names li');
  await expect(names).toHaveText(['train', 'serve', 'train']);
  const choice = page.getByLabel('One lane for each');
  await choice.selectOption('tenant');
  await expect(names).toHaveText(['train', '', 'serve']); // the tenant's two tasks overlap: two rows
  await choice.selectOption('stream');
  await expect(names).toHaveText(['stream 4', 'stream not seen']);
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
  await expect(page.locator('.gk-legend-wide li')).toHaveText(['chat5.0 %, promised 70 %']);
  await threeTasks(page);
  await expect(page.locator('.gk-gantt')).toBeVisible();
  await expect(page.locator('.gk-legend-wide .gk-label')).toHaveText(['chat', 'train']);
});

test('Gantt: keys, wheel, drag and buttons zoom and pan; Live follows again', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const canvas = page.locator('.gk-gantt canvas');
  const [from, span] = [await data(page, 'from-ns'), await data(page, 'span-ns')];
  await canvas.focus();
  await page.keyboard.press('+');
  await expect.poll(() => data(page, 'span-ns')).toBeCloseTo(span / 1.5, -1);
  await page.keyboard.press('-');
  await expect.poll(() => data(page, 'span-ns')).toBeCloseTo(span, -1);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => data(page, 'from-ns')).toBeCloseTo(from + 0.2 * span, -2);
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + 100, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 100 + box.width / 4, box.y + 20);
  await page.mouse.up();
  await expect.poll(() => data(page, 'from-ns')).toBeLessThan(from);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await expect.poll(() => data(page, 'span-ns')).toBeLessThan(0.5 * span);
  await page.getByRole('button', { name: 'Follow the newest tasks' }).click();
  await expect.poll(() => data(page, 'span-ns')).toBe(span);
  await page.getByRole('button', { name: 'Show all tasks' }).click();
  await expect.poll(() => data(page, 'from-ns')).toBe(1e9);
});

test('Gantt: another button of the mouse, and a press that the browser takes away, do not pan; keys with Ctrl are not for it', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const canvas = page.locator('.gk-gantt canvas');
  const [from, span] = [await data(page, 'from-ns'), await data(page, 'span-ns')];
  const box = (await canvas.boundingBox())!;
  const press = async (button: 'left' | 'right', meanwhile: () => Promise<void>): Promise<void> => {
    await page.mouse.move(box.x + 100, box.y + 20);
    await page.mouse.down({ button });
    await meanwhile();
    await page.mouse.move(box.x + 200, box.y + 20);
    await page.mouse.up({ button });
  };
  await press('right', async () => undefined);
  await press('left', () => canvas.evaluate((node) => void node.dispatchEvent(new PointerEvent('lostpointercapture'))));
  await canvas.focus();
  await page.keyboard.press('Control+ArrowRight');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('+');
  await expect.poll(() => data(page, 'span-ns')).toBeCloseTo(span / 1.5, -1);
  expect(await data(page, 'from-ns')).toBeCloseTo(from + (span - span / 1.5) / 2, -2);
  await expect(page.locator('.gk-chosen')).toHaveText(/^Choose a task/);
});

test('Gantt: hover and keys read a task, its reason and its numbers', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  await page.locator('.gk-gantt canvas').hover({ position: { x: 60, y: 26 + 13 } });
  const tip = page.locator('.gk-tip');
  await expect(tip).toContainText('Queued: waiting for memory');
  await expect(tip).toContainText('asked 100, available 7');
  await page.locator('.gk-gantt canvas').focus();
  await page.keyboard.press('ArrowDown');
  await expect(tip).toContainText('Paused');
  await page.keyboard.press('Escape');
  await expect(tip).toBeHidden();
});

test('Gantt: running, queued, throttled and paused look different, and running by class', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  await sendMessage(page, { type: 'tasks', tNs: 3.5e9, rows: [{ number: 1, id: 'id1', name: 'train', phase: 'Running', policy: 'Guaranteed', submittedNs: 1e9, startedNs: 1.1e9, finishedNs: 0, paced: 9 }] });
  await sendFrame(page, encodeFrame(8, 4e9, {}));
  await expect(page.locator('.gk-lane-states li').nth(1)).toHaveText('Queued: waiting for memory');
  await expect.poll(() => data(page, 'span-ns')).toBeGreaterThan(3e9);
  const seen = await page.locator('.gk-gantt canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const span = Number((document.querySelector('[data-span-ns]') as HTMLElement).dataset['spanNs']);
    // Each colour that occurs on the middle line of a bar, in a stretch of time.
    const colours = (row: number, fromNs: number, toNs: number): string[] => {
      const [left, right] = [fromNs, toNs].map((ns) => Math.round(((ns - 1e9) / span) * canvas.width)) as [number, number];
      const { data } = canvas.getContext('2d')!.getImageData(left, 26 * row + 13, right - left, 1);
      return [...new Set(Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join()))];
    };
    return { running: colours(0, 1.5e9, 2.5e9), throttled: colours(0, 3.05e9, 3.45e9), queued: colours(1, 1.5e9, 2.5e9), paused: colours(2, 2.2e9, 3e9) };
  });
  expect(seen.running).toHaveLength(1);
  expect(seen.queued).toHaveLength(1);
  expect(seen.throttled.length).toBeGreaterThan(1);
  expect(seen.paused.length).toBeGreaterThan(1);
  expect(seen.throttled).toContain(seen.running[0]);
  expect(seen.paused).not.toContain(seen.running[0]);
  expect(seen.running).not.toEqual(seen.queued);
});

test('Gantt: while blocks of a tenant are in host memory its lane has dashes below, which the legend names; on hover and in the table, too', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const records = [{ kind: 3, t: 2e9, a: BASE, b: 2 * MiB, c: 5, tenant: 1 }, { kind: 4, t: 3e9, a: BASE, b: 2 * MiB, c: 5, tenant: 1 }];
  await sendFrame(page, encodeFrame(8, 4e9, { records }));
  await expect.poll(() => data(page, 'span-ns')).toBeGreaterThan(3e9);
  const seen = await page.locator('.gk-gantt canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const span = Number((document.querySelector('[data-span-ns]') as HTMLElement).dataset['spanNs']);
    const style = getComputedStyle(document.querySelector('.gk-panel') as HTMLElement);
    const evicted = style.getPropertyValue('--gk-evicted').trim();
    // The part of a stretch of time, on the line between two bars, that has the colour of what is evicted.
    const part = (row: number, fromNs: number, toNs: number): number => {
      const [left, right] = [fromNs, toNs].map((ns) => Math.round(((ns - 1e9) / span) * canvas.width)) as [number, number];
      const { data } = canvas.getContext('2d')!.getImageData(left, 26 * row + 23, right - left, 1);
      const hex = Array.from({ length: data.length / 4 }, (_, i) => `#${[...data.slice(4 * i, 4 * i + 3)].map((value) => value.toString(16).padStart(2, '0')).join('')}`);
      return hex.filter((colour) => colour === evicted).length / hex.length;
    };
    const rows = [0, 1, 2].map((row) => part(row, 2.05e9, 2.95e9));
    return { rows, before: part(0, 1.3e9, 1.95e9), after: part(0, 3.05e9, 3.9e9) };
  });
  for (const dashed of [seen.rows[0], seen.rows[2]]) expect(Math.abs(dashed! - 0.7)).toBeLessThan(0.2); // two tasks of the tenant
  expect([seen.rows[1], seen.before, seen.after]).toEqual([0, 0, 0]);
  await expect(page.locator('.gk-key').first()).toContainText('evicted');
  await page.locator('.gk-gantt canvas').hover({ position: { x: 60, y: 13 } });
  await expect(page.locator('.gk-tip')).toContainText('evicted to host memory: up to 2 MiB for 1.0 s');
  await page.getByText('Tasks as a table').click();
  const cells = page.locator('details', { hasText: 'Tasks as a table' }).locator('tbody td:last-child');
  await expect(cells).toHaveText(['up to 2 MiB for 1.0 s', '\u2013', 'up to 2 MiB for 1.0 s']);
});

test('Gantt: a running task has the colour of its class, which the legend names, light and dark', async ({ page }) => {
  const classes = ['Guaranteed', 'Burstable', 'BestEffort'];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await mount(page, 'scheduler');
    const records = classes.map((_, n) => ({ kind: 32, t: 1e9, a: n + 1, name: 1, b: 4 }));
    await sendFrame(page, encodeFrame(1, 3e9, { records, names: [[1, 'train']] }));
    const rows = classes.map((policy, n) => ({ number: n + 1, id: `id${n}`, name: 'train', phase: 'Running', policy, submittedNs: 1e9, startedNs: 1e9, finishedNs: 0 }));
    await sendMessage(page, { type: 'tasks', tNs: 3e9, rows });
    await expect(page.locator('.gk-lane-states li')).toHaveText([/^Running/, /^Running/, /^Running/]);
    const seen = (): Promise<{ bars: string[]; legend: string[] }> =>
      page.locator('.gk-gantt canvas').evaluate((node) => {
        const canvas = node as HTMLCanvasElement;
        const bar = (row: number): string => [...canvas.getContext('2d')!.getImageData(canvas.width >> 1, 26 * row + 13, 1, 1).data.slice(0, 3)].join(', ');
        const chip = (name: string): string => getComputedStyle(document.querySelector(`.gk-qos-${name}`) as HTMLElement).backgroundColor;
        return { bars: [0, 1, 2].map((row) => `rgb(${bar(row)})`), legend: ['guaranteed', 'burstable', 'best-effort'].map(chip) };
      });
    await expect.poll(async () => new Set((await seen()).bars).size).toBe(classes.length);
    const { bars, legend } = await seen();
    expect(bars).toEqual(legend);
  }
});

test('Gantt: where tasks are denser than pixels a lane is full, and one that failed among them is seen', async ({ page }) => {
  await mount(page, 'scheduler');
  const tasks = 4000;
  const failing = 1000;
  const records = Array.from({ length: tasks }, (_, n) => {
    const [t, a] = [1e9 + n * 1e7, n + 1];
    const step = (at: number, from: number, to: number) => ({ kind: 32, t: t + at, a, name: 1, b: from * 256 + to });
    return [step(0, 0, 4), step(1e7, 4, n === failing ? 7 : 6)];
  }).flat();
  await sendFrame(page, encodeFrame(1, 42e9, { records, names: [[1, 'train']] }));
  await page.getByLabel('One lane for each').selectOption('tenant');
  await page.getByRole('button', { name: 'Show all tasks' }).click();
  await expect(page.locator('.gk-lane-names li')).toHaveText(['train']);
  await expect.poll(() => data(page, 'span-ns')).toBe(tasks * 1e7);
  const { colours, failedAt } = await page.locator('.gk-gantt canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const { data } = canvas.getContext('2d')!.getImageData(0, 13, canvas.width - 1, 1);
    const all = Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join());
    return { colours: [...new Set(all)], failedAt: all.findIndex((colour) => colour !== all[0]) / canvas.width };
  });
  expect(colours).toHaveLength(2);
  expect(failedAt).toBeCloseTo(failing / tasks, 2);
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

test('controls: drawn where the kernel has the operation, and only there', async ({ page }) => {
  await mount(page, 'scheduler', { controls: { actions: ['pause'] } });
  await threeTasks(page);
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible(); // and none in the rows
  await expect(page.getByRole('button', { name: 'Resume' })).toBeHidden();
  await mount(page, 'scheduler', { controls: 'this is a replay: there is nothing to control' });
  await threeTasks(page);
  await expect(page.getByRole('group', { name: 'Scheduler controls' })).toBeHidden();
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

test('controls: a press is a request, its answer is text, a busy kernel reads queued', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, pause: { note: 'paused now' }, cancel: 'no task' });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(status).toHaveText('paused now');
  const cancel = page.getByRole('button', { name: 'Cancel the chosen task' });
  await expect(cancel).toBeDisabled();
  await page.locator('.gk-gantt canvas').click({ position: { x: 60, y: 13 } });
  await expect(page.locator('.gk-chosen')).toContainText('Chosen: train, Running');
  await cancel.click();
  await expect(status).toHaveText('Cancel the chosen task: no task');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'cancel', args: { task: 'id1' } });
  await page.getByRole('button', { name: 'Resume', exact: true }).click(); // never answered
  await expect(status).toHaveText('Resume: queued until the running cell ends');
  await expect(status).toHaveAttribute('data-state', 'queued');
});

test('controls: each task that has not ended is paused and resumed in its row, by keyboard alone', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, pause_task: { note: 'serve is paused' }, resume_task: { note: 'train goes on' } });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  const states = page.locator('.gk-lane-states li');
  const buttons = page.locator('.gk-row-button');
  await expect(states).toHaveText([/^Running/, 'Queued: waiting for memory', 'Paused']);
  await expect(buttons.nth(1)).toHaveAccessibleName('Pause serve');
  await page.locator('.gk-gantt canvas').focus();
  for (const name of ['Pause train', 'Pause serve', 'Resume train']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveAccessibleName(name);
  }
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('train goes on');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press(' ');
  await expect(status).toHaveText('serve is paused');
  expect((await page.evaluate(() => window.requests)).slice(-2)).toMatchObject([
    { action: 'resume_task', args: { task: 'id3' } },
    { action: 'pause_task', args: { task: 'id2' } },
  ]);
  const row = { number: 2, id: 'id2', name: 'serve', phase: 'Queued', submittedNs: 1e9, startedNs: 0, finishedNs: 0 };
  await sendMessage(page, { type: 'tasks', tNs: 3.2e9, rows: [{ ...row, paused: true }] });
  await expect(states.nth(1)).toHaveText('Queued: paused');
  await expect(states.nth(1)).toHaveAttribute('data-paused', 'true');
  await expect(page.locator(':focus')).toHaveAccessibleName('Resume serve');
  // While the focus is in a row, tasks that come do not put another in its place.
  const records = Array.from({ length: 20 }, (_, n) => ({ kind: 32, t: 3.5e9, a: 10 + n, name: 1, b: 2 }));
  await sendFrame(page, encodeFrame(8, 4e9, { records }));
  await expect(panel(page)).toHaveAttribute('data-tasks', '23');
  await expect(page.locator(':focus')).toHaveAccessibleName('Resume serve');
  await page.locator('.gk-gantt canvas').focus();
  await expect(buttons.first()).toBeHidden(); // the newest rows, of which no facts are known yet
});

test('controls: priority and share of the chosen task, by keyboard alone', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, priority: { note: 'train has priority 5' }, share: 'bandwidth: 900000 ppm more, and 500000 ppm are free' });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  const [priority, share] = [page.getByLabel('Set priority: such as 5'), page.getByLabel('Set share: such as 30 %')];
  for (const field of [priority, share]) await expect(field).toBeDisabled();
  await page.locator('.gk-gantt canvas').focus();
  for (const key of ['ArrowDown', 'Enter']) await page.keyboard.press(key);
  await expect(page.locator('.gk-chosen')).toContainText('train, Running');
  await expect(page.locator('.gk-chosen')).toContainText('promised 50 %, priority 2');
  await priority.focus();
  await page.keyboard.type('5');
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('train has priority 5');
  for (const name of ['Set priority', 'Set share: such as 30 %']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveAccessibleName(name);
  }
  await page.keyboard.type('140 %');
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('Set share: bandwidth: 900000 ppm more, and 500000 ppm are free');
  await expect(status).toHaveAttribute('data-state', 'refused');
  const sent = (await page.evaluate(() => window.requests)).slice(-2);
  expect(sent).toMatchObject([
    { action: 'priority', args: { task: 'id1', priority: '5' } },
    { action: 'share', args: { task: 'id1', share: '140 %' } },
  ]);
});

test('controls: the share of a partition, where there is one', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, share: { note: 'partition serving keeps 40 % of the device' } });
  await threeTasks(page);
  const of = page.getByLabel('Share of', { exact: true });
  await expect(of).toBeHidden();
  await expect(page.getByText('Partitions as a table')).toBeHidden();
  const rows = [{ id: 'serving', sharePpm: 300_000, usedPpm: 0 }, { id: 'training', sharePpm: 500_000, usedPpm: 250_000 }];
  await sendMessage(page, { type: 'partitions', rows: [...rows, { id: 3 }, null, { id: 'x', sharePpm: 'y', usedPpm: 0 }] });
  await of.selectOption('partition serving');
  await sendMessage(page, { type: 'partitions', rows: [...rows].reverse() });
  await expect(of.locator('option')).toHaveText(['chosen task', 'partition training', 'partition serving']);
  await expect(of).toHaveValue('partition serving');
  await page.getByLabel('Set share: such as 30 %').fill('40 %');
  await page.keyboard.press('Enter');
  await expect(page.locator('.gk-control-status')).toHaveText('partition serving keeps 40 % of the device');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'share', args: { partition: 'serving', share: '40 %' } });
  await page.getByText('Partitions as a table').click();
  const table = page.locator('details', { hasText: 'Partitions as a table' }).locator('tbody tr');
  await expect(table).toHaveText(['training50 %25 %', 'serving30 %no share']);
});

test('controls: what has ended cannot be chosen to act on', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS });
  await threeTasks(page);
  await page.locator('.gk-gantt canvas').click({ position: { x: 60, y: 13 } });
  await expect(page.getByLabel('Set share: such as 30 %')).toBeEnabled();
  await sendFrame(page, encodeFrame(8, 4e9, { records: [{ kind: 32, t: 3.9e9, a: 1, name: 1, b: 4 * 256 + 6 }] }));
  for (const name of ['Set priority: such as 5', 'Set share: such as 30 %']) await expect(page.getByLabel(name)).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Cancel the chosen task' })).toBeDisabled();
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
  await page.setViewportSize({ width: 960, height: 900 });
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

test('memory: a new limit is sent as it was written', async ({ page }) => {
  await mount(page, 'memory', { controls: CONTROLS, quota: { note: 'the limit is 2 GiB' } });
  await sendFrame(page, encodeFrame(1, 1e9, { gauges: [MiB] }));
  await page.getByLabel('Set limit: such as 2GB').fill('2GB');
  await page.keyboard.press('Enter');
  await expect(page.locator('.gk-control-status')).toHaveText('the limit is 2 GiB');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'quota', args: { limit: '2GB' } });
});

const BLOCKS: FrameFields = {
  gauges: [6 * MiB, 8 * MiB],
  names: [[1, 'alpha'], [2, 'beta'], [3, 'tenant one']],
  records: [
    { kind: 64, a: 4, cell: 9 },
    { kind: 5, a: BASE, b: 8 * MiB, c: 8 * MiB },
    { kind: 1, a: BASE, b: 2 * MiB, c: 1, name: 1, tenant: 3, cell: 9, line: 3 },
    { kind: 1, a: BASE + 3 * MiB, b: 4 * MiB, c: 2, name: 2 },
    { kind: 3, a: BASE, b: 2 * MiB, name: 1 },
    { kind: 4, a: BASE, b: 2 * MiB, name: 1 },
  ],
};

test('memory: by owner, tenant, array, cell and line; fragmentation; evictions and restores', async ({ page }) => {
  await mount(page, 'memory');
  await sendFrame(page, encodeFrame(1, 1e9, BLOCKS));
  await expect(panel(page)).toHaveAttribute('data-fragmentation', '0.5000'); // 1 MiB free twice
  const labels = page.locator('.gk-legend .gk-label');
  for (const [view, expected] of [
    ['tenant', ['no tenant', 'tenant one']],
    ['cell and line', ['not from a cell', 'In [4], line 3']],
    ['array', ['beta', 'alpha']],
    ['owner', ['beta', 'alpha']],
  ] as const) {
    await page.getByLabel('Arrange blocks by').selectOption(view);
    await expect(labels).toHaveText(expected);
  }
  await page.locator('.gk-map canvas').hover({ position: { x: 10, y: 8 } });
  await expect(page.locator('.gk-tip')).toContainText('beta');
  await page.getByLabel('Arrange blocks by').selectOption('address');
  await page.mouse.move(0, 0);
  await page.locator('.gk-map canvas').hover({ position: { x: 10, y: 8 } });
  await expect(page.locator('.gk-tip')).toHaveText(/alpha\s*2 MiB at 0x7f0000000000\s*tenant tenant one\s*In \[4\], line 3/);
  await page.getByText('Evictions and restores').click();
  const events = page.locator('details', { hasText: 'Evictions and restores' }).locator('tbody tr');
  await expect(events).toContainText([/restored\s*2 MiB\s*alpha/, /evicted\s*2 MiB\s*alpha/]);
});

test('memory: peaks of the cells are a table, the newest first', async ({ page }) => {
  await mount(page, 'memory');
  await sendFrame(page, encodeFrame(1, 1e9, BLOCKS));
  await sendMessage(page, { type: 'cells', rows: [{ ...FIGURES, count: 3, peak: 2 * MiB, kept: 0, leaked: 0 }, FIGURES] });
  await page.getByText('Peaks by cell').click();
  const rows = page.locator('details', { hasText: 'Peaks by cell' }).locator('tbody tr');
  await expect(rows).toHaveText([/In \[4\]\s*3 MiB\s*1 MiB\s*1 MiB/, /In \[3\]\s*2 MiB\s*0 B\s*0 B/]);
});

/** A notebook's markup around the view, as far as the views look at it. */
async function inNotebook(page: Page): Promise<void> {
  await page.evaluate(() => {
    const root = document.createElement('div');
    root.className = 'jp-Notebook';
    root.innerHTML = [3, 4]
      .map((n) => `<div class="jp-CodeCell" style="height:1500px"><div class="jp-Cell-inputWrapper"><div class="jp-InputPrompt">[${n}]:</div></div></div>`)
      .join('');
    document.body.prepend(root);
    root.append(document.querySelector('.gk-panel') as HTMLElement);
  });
}

test('memory: a click on a block goes to the cell that made it', async ({ page }) => {
  await mount(page, 'memory');
  await inNotebook(page);
  await sendFrame(page, encodeFrame(1, 1e9, BLOCKS));
  await page.locator('.gk-map canvas').click({ position: { x: 10, y: 8 } });
  const cells = page.locator('.jp-CodeCell');
  await expect(cells.nth(1)).toHaveClass(/gk-revealed/);
  await expect(cells.nth(1)).toBeInViewport();
  await expect(cells.nth(0)).not.toHaveClass(/gk-revealed/);
});

const FIGURES = { count: 4, wallNs: 5e6, gpuNs: 3.2e6, launches: 12, untimed: 0, peak: 3 * MiB, kept: MiB, leaked: MiB, complete: true };

test('cells: a badge on each cell, the table, and what is not timed', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  const rows = [{ ...FIGURES, count: 3, launches: 2, untimed: 2, gpuNs: 0, leaked: 0, complete: false }, FIGURES];
  await sendMessage(page, { type: 'cells', rows });
  const badges = page.locator('.gk-badge');
  await expect(badges).toHaveText(['GPU not timed \u00b7 2 launches \u00b7 peak 3 MiB', 'GPU 3.2 ms \u00b7 12 launches \u00b7 peak 3 MiB \u00b7 leaked 1 MiB']);
  await expect(page.locator('.gk-chosen')).toContainText('2 kernel launches have no event times');
  await expect(page.locator('tbody tr').nth(1)).toContainText(/In \[3\]\s*not timed\s*2\s*at least 3 MiB/);
  await sendMessage(page, { type: 'cells', rows: [{ ...FIGURES, untimed: 12, gpuNs: 0, leaked: 0, running: true }] });
  await expect(badges).toHaveText(['GPU still running \u00b7 12 launches \u00b7 peak 3 MiB']);
  await expect(page.locator('.gk-chosen')).toHaveText('');
  await sendMessage(page, { type: 'cells', rows: [FIGURES] });
  await expect(badges).toHaveText([/^GPU 3\.2 ms/]);
  await page.evaluate(() => window.unmount());
  await expect(badges).toHaveCount(0);
});

test('cells: badges are in the notebook of the view, and replace those of an earlier run', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  await page.evaluate(() => {
    const [own] = document.querySelectorAll('.jp-Notebook');
    const other = own!.cloneNode(true) as HTMLElement;
    other.querySelector('.gk-panel')?.remove();
    other.id = 'other';
    other.lastElementChild!.querySelector('.jp-InputPrompt')!.textContent = '[5]:';
    document.body.prepend(other);
    const old = document.createElement('span');
    Object.assign(old, { className: 'gk-badge', textContent: 'of an earlier run' });
    own!.querySelector('.jp-Cell-inputWrapper')!.append(old);
  });
  const rows = [3, 5].map((count) => ({ ...FIGURES, count }));
  const badges = (notebook: string) => page.locator(`.jp-Notebook${notebook} .gk-badge`);
  await sendMessage(page, { type: 'cells', rows });
  await expect(badges(':not(#other)')).toHaveText([/^GPU 3\.2 ms/]);
  await expect(badges('#other')).toHaveCount(0);
  /** The view stands elsewhere from now on. */
  const move = (notebook?: string): Promise<void> =>
    page.evaluate((named) => {
      const pane = document.createElement('div');
      if (named !== undefined) pane.dataset['gkNotebook'] = named;
      pane.append(document.querySelector('.gk-panel') as HTMLElement);
      document.body.append(pane);
    }, notebook);
  await move('other'); // in a pane that names it
  await sendMessage(page, { type: 'cells', rows });
  await expect(badges('#other')).toHaveCount(2);
  await expect(badges(':not(#other)')).toHaveCount(0);
  await move(); // in one that does not, beside two
  await sendMessage(page, { type: 'cells', rows });
  await expect(page.locator('.gk-badge')).toHaveCount(0);
  await page.evaluate(() => document.getElementById('other')!.remove());
  await sendMessage(page, { type: 'cells', rows });
  await expect(badges('')).toHaveCount(1);
});

for (const name of ['device', 'cells'] as const satisfies ModuleName[]) {
  test(`${name}: a sentence until something comes`, async ({ page }) => {
    await mount(page, name);
    await expect(panel(page)).toHaveAttribute('data-state', 'waiting');
    await expect(page.locator('.gk-message')).toContainText('Waiting for the kernel. If this stays, run the cell');
  });
}

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

for (const name of ['memory', 'scheduler', 'device', 'cells'] as const satisfies ModuleName[]) {
  test(`replay: the recorded trace fills the ${name} view, with no kernel and no request`, async ({ page }) => {
    const requests: string[] = [];
    page.on('request', (request) => /^https?:/.test(request.url()) && requests.push(request.url()));
    await mount(page, name);
    expect(await playTrace(page, TRACE)).toBeGreaterThan(20);
    await expect(panel(page)).toHaveAttribute('data-state', /live|paused/); // two seconds after the last frame
    const expected = {
      memory: () => expect(page.locator('.gk-legend .gk-label').first()).toHaveText('weights'),
      scheduler: () => expect(panel(page)).toHaveAttribute('data-tasks', '7'),
      device: () => expect(page.locator('.gk-chosen').first()).toContainText('simulated'),
      cells: () => expect(panel(page)).toHaveAttribute('data-cells', '3'),
    };
    await expected[name]();
    expect(requests).toEqual([]);
  });
}

test('two views that got the same messages show the same record', async ({ page, context }) => {
  const other = await context.newPage();
  for (const each of [page, other]) {
    await mount(each, 'memory');
    await playTrace(each, TRACE);
    await expect(panel(each)).toHaveAttribute('data-state', /live|paused/);
  }
  expect(await panel(page).getAttribute('data-seq')).toBe(await panel(other).getAttribute('data-seq'));
});
