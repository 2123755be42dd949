// The Gantt chart of the scheduler view: lanes, zoom and pan, what is read on hover, and how states look.

import { type Page, expect, test } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { mount, sendFrame, sendMessage } from '../support/plain-page.ts';
import { threeTasks } from '../support/three-tasks.ts';
import { failOnPageErrors } from '../support/views.ts';

const MiB = 2 ** 20;
const BASE = 0x7f00_0000_0000;
const data = async (page: Page, key: string): Promise<number> => Number(await page.locator('[data-span-ns]').getAttribute(`data-${key}`));

failOnPageErrors();

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
  await page.locator('.gk-gantt canvas').hover({ position: { x: 60, y: 32 + 16 } });
  const tip = page.locator('.gk-tip');
  await expect(tip).toContainText('Queued: waiting for memory');
  await expect(tip).toContainText('asked 100, available 7');
  await page.locator('.gk-gantt canvas').focus();
  await page.keyboard.press('ArrowDown');
  await expect(tip).toContainText('Paused');
  await page.keyboard.press('Escape');
  await expect(tip).toBeHidden();
});

test('Gantt: running, queued, throttled and paused look different', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  await sendMessage(page, { type: 'tasks', tNs: 3.5e9, rows: [{ number: 1, id: 'id1', name: 'train', phase: 'Running', policy: 'Guaranteed', submittedNs: 1e9, startedNs: 1.1e9, finishedNs: 0, waitedNs: 4e8 }] });
  await sendFrame(page, encodeFrame(8, 4e9, { records: [{ kind: 35, a: 1, b: 3.05e9, c: 4e8, t: 3.45e9 }] }));
  await expect(page.locator('.gk-lane-states li').nth(1)).toHaveText('Queued: waiting for memory');
  await expect.poll(() => data(page, 'span-ns')).toBeGreaterThanOrEqual(3e9);
  const seen = await page.locator('.gk-gantt canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const span = Number((document.querySelector('[data-span-ns]') as HTMLElement).dataset['spanNs']);
    // Each colour that occurs on the middle line of a bar, in a stretch of time.
    const colours = (row: number, fromNs: number, toNs: number): string[] => {
      const [left, right] = [fromNs, toNs].map((ns) => Math.round(((ns - 1e9) / span) * canvas.width)) as [number, number];
      const { data } = canvas.getContext('2d')!.getImageData(left, 32 * row + 16, right - left, 1);
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
  await expect.poll(() => data(page, 'span-ns')).toBeGreaterThanOrEqual(3e9);
  const seen = await page.locator('.gk-gantt canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const span = Number((document.querySelector('[data-span-ns]') as HTMLElement).dataset['spanNs']);
    const style = getComputedStyle(document.querySelector('.gk-panel') as HTMLElement);
    const evicted = style.getPropertyValue('--gk-evicted').trim();
    // The part of a stretch of time, on the line between two bars, that has the colour of what is evicted.
    const part = (row: number, fromNs: number, toNs: number): number => {
      const [left, right] = [fromNs, toNs].map((ns) => Math.round(((ns - 1e9) / span) * canvas.width)) as [number, number];
      const { data } = canvas.getContext('2d')!.getImageData(left, 32 * row + 26, right - left, 1);
      const hex = Array.from({ length: data.length / 4 }, (_, i) => `#${[...data.slice(4 * i, 4 * i + 3)].map((value) => value.toString(16).padStart(2, '0')).join('')}`);
      return hex.filter((colour) => colour === evicted).length / hex.length;
    };
    const rows = [0, 1, 2].map((row) => part(row, 2.05e9, 2.95e9));
    return { rows, before: part(0, 1.3e9, 1.95e9), after: part(0, 3.05e9, 3.9e9) };
  });
  for (const dashed of [seen.rows[0], seen.rows[2]]) expect(Math.abs(dashed! - 0.7)).toBeLessThan(0.2); // two tasks of the tenant
  expect([seen.rows[1], seen.before, seen.after]).toEqual([0, 0, 0]);
  await expect(page.locator('.gk-key').first()).toContainText('evicted');
  await page.locator('.gk-gantt canvas').hover({ position: { x: 60, y: 16 } });
  await expect(page.locator('.gk-tip')).toContainText('evicted to host memory: up to 2 MiB for 1.0 s');
  await page.getByText('Tasks as a table').click();
  const cells = page.locator('details', { hasText: 'Tasks as a table' }).locator('tbody td:last-child');
  await expect(cells).toHaveText(['up to 2 MiB for 1.0 s', '\u2013', 'up to 2 MiB for 1.0 s']);
});

/** Three tenants that run, each with a promise, told by a kernel. */
async function threeTenants(page: Page, timeNs = 3e9): Promise<void> {
  const tenants = ['train', 'serve', 'tune'];
  const records = tenants.map((_, n) => ({ kind: 32, t: 1e9, a: n + 1, name: n + 1, b: 4 }));
  await sendFrame(page, encodeFrame(1, timeNs, { records, names: tenants.map((name, n): [number, string] => [n + 1, name]) }));
  const rows = tenants.map((name, n) => ({ number: n + 1, id: `id${n}`, name, scheduler: `scheduler ${1 + (n >> 1)}`, phase: 'Running', policy: 'Burstable', sharePpm: 200_000, submittedNs: 1e9, startedNs: 1e9, finishedNs: 0 }));
  await sendMessage(page, { type: 'tasks', tNs: timeNs, rows });
  await expect(page.locator('.gk-lane-states li')).toHaveText([/^Running/, /^Running/, /^Running/]);
}

test('Gantt: a running task has the colour of its tenant, as in the shares below, light and dark; its class is words', async ({ page }) => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await mount(page, 'scheduler');
    await threeTenants(page);
    const seen = (): Promise<{ bars: string[]; legend: string[] }> =>
      page.locator('.gk-gantt canvas').evaluate((node) => {
        const canvas = node as HTMLCanvasElement;
        const bar = (row: number): string => [...canvas.getContext('2d')!.getImageData(canvas.width >> 1, 32 * row + 16, 1, 1).data.slice(0, 3)].join(', ');
        const chips = [...document.querySelectorAll('.gk-legend-wide .gk-swatch')].map((chip) => getComputedStyle(chip).backgroundColor);
        return { bars: [0, 1, 2].map((row) => `rgb(${bar(row)})`), legend: chips };
      });
    await expect.poll(async () => new Set((await seen()).bars).size).toBe(3);
    const { bars, legend } = await seen();
    expect(bars).toEqual(legend);
    await expect(page.locator('.gk-lane-states li').first()).toHaveText(/ \u00b7 burstable$/);
  }
});

test('Gantt: what the shapes mean stands beside the title', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const key = page.locator('.gk-section', { hasText: 'Tasks' }).locator('.gk-key').first();
  await expect(key).toHaveText(/running, by tenant.*held back by its limit.*paused.*evicted/);
  await expect(key.locator('.gk-swatch-throttled')).toHaveCSS('background-image', /repeating-linear-gradient/);
});

test('Gantt: lanes, shares and launches stand between the same edges, over the same time, which pans as one', async ({ page }) => {
  await mount(page, 'scheduler');
  await threeTasks(page);
  const edges = await page.locator('.gk-timed canvas').evaluateAll((all) => all.map((node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().right]));
  expect(edges).toHaveLength(3);
  expect(new Set(edges.map(String)).size).toBe(1);
  const [[left = 0, right = 0] = []] = edges;
  const panel = (await page.locator('.gk-panel').boundingBox())!;
  expect((right - left) / panel.width).toBeGreaterThan(0.7);
  const time = async (): Promise<unknown> => page.locator('.gk-panel').evaluate(({ dataset }) => [dataset['fromNs'], dataset['toNs']]);
  const before = await time();
  await page.locator('.gk-gantt canvas').focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(time).not.toEqual(before);
  expect(((await time()) as string[])[0]).toBe(String(await data(page, 'from-ns')));
});

test('Gantt: of several schedulers one can be looked at, in lanes, phases and tables', async ({ page }) => {
  await mount(page, 'scheduler');
  const choice = page.getByLabel('Tasks of');
  await threeTasks(page);
  await expect(choice).toBeHidden();
  await mount(page, 'scheduler');
  await threeTenants(page);
  await expect(choice.locator('option')).toHaveText(['all schedulers', 'scheduler 1', 'scheduler 2']);
  await choice.selectOption('scheduler 2');
  await expect(page.locator('.gk-lane-names li')).toHaveText(['tune']);
  await expect(page.locator('.gk-phases li[data-phase="Running"]')).toHaveAttribute('data-count', '1');
  await expect(page.locator('.gk-legend-wide .gk-label')).toHaveText(['tune']);
  await page.getByText('Tasks as a table').click();
  await expect(page.locator('details', { hasText: 'Tasks as a table' }).locator('tbody tr')).toHaveCount(1);
  await choice.selectOption('all schedulers');
  await expect(page.locator('.gk-lane-names li')).toHaveText(['train', 'serve', 'tune']);
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
    const { data } = canvas.getContext('2d')!.getImageData(0, 16, canvas.width - 1, 1);
    const all = Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join());
    return { colours: [...new Set(all)], failedAt: all.findIndex((colour) => colour !== all[0]) / canvas.width };
  });
  expect(colours).toHaveLength(2);
  expect(failedAt).toBeCloseTo(failing / tasks, 2);
});
