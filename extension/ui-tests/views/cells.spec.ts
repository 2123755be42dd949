// The view of cells: a badge on each cell of its notebook, and the table.

import { expect, test } from '@playwright/test';
import { FIGURES, inNotebook } from '../support/plain-cells.ts';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors } from '../support/views.ts';

failOnPageErrors();

test('cells: a badge on each cell, the table, and what is not timed', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  const rows = [{ ...FIGURES, cell: 'cell-3', count: 3, launches: 2, untimed: 2, gpuNs: 0, leaked: 0, complete: false }, FIGURES];
  await sendMessage(page, { type: 'cells', rows });
  const badges = page.locator('.gk-badge');
  await expect(badges).toHaveText(['GPU not timed \u00b7 2 launches \u00b7 peak 3 MiB', 'GPU 3.2 ms \u00b7 12 launches \u00b7 peak 3 MiB \u00b7 1 MiB held, unnamed']);
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

test('cells: a badge lies below its code', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  await sendMessage(page, { type: 'cells', rows: [FIGURES] });
  const free = await page.locator('.gk-badge').evaluate((badge) => {
    const area = badge.parentElement!;
    const range = document.createRange();
    range.selectNodeContents(area);
    range.setEndBefore(badge);
    return badge.getBoundingClientRect().top - range.getBoundingClientRect().bottom;
  });
  expect(free).toBeGreaterThanOrEqual(0);
});

test('cells: badges are in the notebook of the view, and replace those of an earlier run', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  await page.evaluate(() => {
    const [own] = document.querySelectorAll('.jp-Notebook');
    const other = own!.cloneNode(true) as HTMLElement;
    other.querySelector('.gk-panel')?.remove();
    other.id = 'other';
    (other.lastElementChild as HTMLElement).dataset['gkCell'] = 'cell-5';
    document.body.prepend(other);
    const old = document.createElement('span');
    Object.assign(old, { className: 'gk-badge', textContent: 'of an earlier run' });
    own!.querySelector('.jp-Cell-inputWrapper')!.append(old);
  });
  const rows = [3, 5].map((count) => ({ ...FIGURES, cell: `cell-${count}`, count }));
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

test('cells: a badge is of the last run of its cell, whatever number the prompt has', async ({ page }) => {
  await mount(page, 'cells');
  await inNotebook(page);
  const runs = [
    { ...FIGURES, cell: 'cell-3', count: 4, launches: 1 },
    { ...FIGURES, cell: 'cell-3', count: 5, launches: 2 },
    { ...FIGURES, cell: 'gone', count: 3 },
    { ...FIGURES, cell: undefined, count: 4 }, // of a trace that has no ids
  ];
  await sendMessage(page, { type: 'cells', rows: runs });
  await expect(page.locator('.gk-badge')).toHaveText([/2 launches/]);
  await expect(page.locator('[data-gk-cell="cell-3"] .gk-badge')).toHaveCount(1);
  await expect(page.locator('tbody tr')).toHaveCount(4);
});
