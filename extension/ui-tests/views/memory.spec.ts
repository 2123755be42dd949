// The memory view: its map, arranged in each way, what is read of a block, and the tables.

import { expect, test } from '@playwright/test';
import { type FrameFields, encodeFrame } from '../../core/test/encode.ts';
import { FIGURES, inNotebook } from '../support/plain-cells.ts';
import { mount, sendFrame, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

const MiB = 2 ** 20;
const BASE = 0x7f00_0000_0000;
const BLOCKS: FrameFields = {
  gauges: [6 * MiB, 8 * MiB],
  names: [[1, 'alpha'], [2, 'beta'], [3, 'tenant one'], [9, 'cell-4']],
  records: [
    { kind: 64, a: 4, cell: 9 },
    { kind: 5, a: BASE, b: 8 * MiB, c: 8 * MiB },
    { kind: 1, a: BASE, b: 2 * MiB, c: 1, name: 1, tenant: 3, cell: 9, line: 3 },
    { kind: 1, a: BASE + 3 * MiB, b: 4 * MiB, c: 2, name: 2 },
    { kind: 3, a: BASE, b: 2 * MiB, name: 1 },
    { kind: 4, a: BASE, b: 2 * MiB, name: 1 },
  ],
};

failOnPageErrors();

test('memory: the map follows the blocks, and the keyboard reads them', async ({ page }) => {
  await mount(page, 'memory');
  const names: [number, string][] = [[1, 'alpha'], [2, 'beta']];
  const records = [
    { kind: 64, a: 4, cell: 9 },
    { kind: 5, a: BASE, b: 8 * MiB, c: 8 * MiB },
    { kind: 1, a: BASE, b: 2 * MiB, c: 1, name: 1, cell: 9, line: 3 },
    { kind: 1, a: BASE + 4 * MiB, b: 4 * MiB, c: 2, name: 2 },
  ];
  await sendFrame(page, encodeFrame(1, 1e9, { gauges: [6 * MiB, 8 * MiB], records, names }));
  await expect(panel(page)).toHaveAttribute('data-blocks', '2');
  await expect(page.locator('.gk-legend .gk-label')).toHaveText(['beta', 'alpha']);
  await page.locator('.gk-map canvas').focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.gk-tip')).toHaveText(/alpha\s*2 MiB at 0x7f0000000000\s*In \[4\], line 3/);
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.gk-tip')).toContainText('beta');
  // One that comes before it does not take its place, nor does a second row of it count as another.
  await sendFrame(page, encodeFrame(6, 1.5e9, { gauges: [8 * MiB, 8 * MiB], records: [{ kind: 1, a: BASE + 2 * MiB, b: MiB, c: 3 }] }));
  await expect(panel(page)).toHaveAttribute('data-blocks', '3');
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.gk-tip')).toContainText('beta');
  await page.keyboard.press('ArrowLeft');
  await expect(page.locator('.gk-tip')).toContainText('unnamed');
  await sendFrame(page, encodeFrame(8, 1.6e9, { gauges: [6 * MiB, 8 * MiB], records: [{ kind: 2, a: BASE + 2 * MiB }] }));
  await expect(page.locator('.gk-tip')).toBeHidden();
  // Four rows of 2 MiB, 21 pixels apart: alpha, free, beta, beta.
  const colours = await page.locator('.gk-map canvas').evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    const row = (i: number): string =>
      [...(canvas.getContext('2d')?.getImageData(canvas.width >> 1, 8 + 21 * i, 1, 1).data ?? [])].join();
    return [row(0), row(1), row(2), row(3)];
  });
  expect(new Set(colours).size).toBe(3);
  expect(colours[2]).toBe(colours[3]);
  await sendFrame(page, encodeFrame(10, 2e9, { gauges: [2 * MiB, 8 * MiB], records: [{ kind: 2, a: BASE + 4 * MiB }] }));
  await expect(page.locator('.gk-legend .gk-label')).toHaveText(['alpha']);
});

test('memory: by owner, tenant, array, cell and line; fragmentation; evictions and restores', async ({ page }) => {
  await mount(page, 'memory');
  await sendFrame(page, encodeFrame(1, 1e9, BLOCKS));
  await expect(panel(page)).toHaveAttribute('data-fragmentation', '0.5000'); // 1 MiB free twice
  await expect(page.locator('.gk-scattered')).toBeHidden();
  await expect(page.locator('.gk-figures')).not.toContainText('Fragmentation');
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

test('memory: a click on a block goes to the cell that made it', async ({ page }) => {
  await mount(page, 'memory');
  await inNotebook(page);
  await sendFrame(page, encodeFrame(1, 1e9, BLOCKS));
  const cells = page.locator('.jp-CodeCell');
  // It is marked for a moment only.
  await cells.evaluateAll((nodes) => {
    for (const node of nodes) {
      const marked = (): void => void (node.classList.contains('gk-revealed') && node.setAttribute('data-revealed', 'yes'));
      new MutationObserver(marked).observe(node, { attributeFilter: ['class'] });
    }
  });
  await page.locator('.gk-map canvas').click({ position: { x: 10, y: 8 } });
  await expect(cells.nth(1)).toHaveAttribute('data-revealed', 'yes');
  await expect(cells.nth(1)).toBeInViewport();
  await expect(cells.nth(0)).not.toHaveAttribute('data-revealed');
});
