// The cells that views in a plain page tell of: their markup around a view, and the figures of one.

import { type Page } from '@playwright/test';

const MiB = 2 ** 20;

/** What the kernel tells of the cell that ran as In [4]. */
export const FIGURES = { cell: 'cell-4', count: 4, wallNs: 5e6, gpuNs: 3.2e6, launches: 12, untimed: 0, peak: 3 * MiB, kept: MiB, leaked: MiB, complete: true };

/** A notebook's markup around the view, as far as the views look at it. */
export async function inNotebook(page: Page): Promise<void> {
  await page.evaluate(() => {
    const root = document.createElement('div');
    root.className = 'jp-Notebook';
    root.innerHTML = [3, 4]
      .map((n) => `<div class="jp-CodeCell" data-gk-cell="cell-${n}" style="height:1500px"><div class="jp-Cell-inputWrapper"><div class="jp-InputPrompt">[${n}]:</div></div></div>`)
      .join('');
    document.body.prepend(root);
    root.append(document.querySelector('.gk-panel') as HTMLElement);
  });
}
