// The tour as a workbench: the notebook at its CUDA cell, both dashboards beside it.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';

const IMAGES = join(import.meta.dirname, '../../../docs/images');
const SIZE = { width: 1680, height: 1260 };

for (const [name, theme] of [
  ['light', 'JupyterLab Light'],
  ['dark', 'JupyterLab Dark'],
] as const) {
  test(`tour, ${name}`, async ({ browser }) => {
    const server = await LabServer.start(theme);
    try {
      const page = await browser.newPage({ viewport: SIZE });
      const notebook = new NotebookPage(page);
      await notebook.open(server.notebookUrl('00_tour.ipynb'));
      await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
      const tasks = await notebook.cellWith('scheduler.submit(');
      await notebook.runAbove(tasks);
      await notebook.expectNoErrors();
      await notebook.viewOutputsBeside(['MemoryWidget', 'SchedulerWidget']);
      await page.waitForTimeout(6_000);
      // Taken while the tasks run.
      const kernel = await notebook.cellWith('void sobel');
      await notebook.beginCell(tasks);
      await notebook.scrollTo(kernel);
      await page.locator('.gk-panel[data-running="1"]').first().waitFor();
      await page.waitForTimeout(300);
      mkdirSync(IMAGES, { recursive: true });
      await page.screenshot({ path: join(IMAGES, `tour-${name}.png`) });
    } finally {
      await server.stop();
    }
  });
}
