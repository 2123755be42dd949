// Figures with a kernel in JupyterLab: updates that reach the page in a busy cell, control latency, messages while hidden.

import { test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';
import { percentile, report } from './figures.ts';

const BUSY_S = 10;
const PRESSES = 10;
const BUSY = (seconds: number): string => `
import time as _time, pygpukit as _gp
_end = _time.monotonic() + ${seconds}
while _time.monotonic() < _end:
    _gp.ones(1 << 14) + _gp.ones(1 << 14)
    _time.sleep(0.005)
`;

test('a busy kernel', async ({ browser }) => {
  const server = await LabServer.start('JupyterLab Light');
  try {
    const notebook = new NotebookPage(await browser.newPage());
    const { page } = notebook;
    await notebook.open(server.notebookUrl('06_dashboards.ipynb'));
    await notebook.runAll();
    const versions = await notebook.execute("import ipykernel, jupyterlab; print(ipykernel.__version__, jupyterlab.__version__, end='')");
    const view = page.locator('.gk-panel[aria-label="GPU scheduler"]').first();
    await view.scrollIntoViewIfNeeded();
    await page.locator('.gk-panel[aria-label="GPU scheduler"][data-state="live"]').first().waitFor();

    await notebook.start(BUSY(BUSY_S));
    const seen = await view.evaluate(async (node, ms) => {
      const at: number[] = [];
      const observer = new MutationObserver(() => at.push(performance.now()));
      observer.observe(node, { attributeFilter: ['data-seq'] });
      await new Promise((done) => setTimeout(done, ms));
      observer.disconnect();
      return at;
    }, BUSY_S * 1000 - 1500);
    const stillBusy = await notebook.busy();
    await notebook.finish();
    const gaps = seen.slice(1).map((at, i) => at - (seen[i] ?? 0));
    const perSecond = (1000 * (seen.length - 1)) / ((seen.at(-1) ?? 1) - (seen[0] ?? 0));
    report('busy_cell', { versions, updates: seen.length, updates_per_s: Number(perSecond.toFixed(2)), gap_p95_ms: percentile(gaps, 0.95), busy_to_the_end: String(stillBusy) });

    await notebook.start(BUSY(BUSY_S));
    const latencies: number[] = [];
    for (let i = 0; i < PRESSES; i++) {
      const button = view.getByRole('button', { name: i % 2 === 0 ? 'Pause' : 'Resume', exact: true });
      latencies.push(
        await button.evaluate(async (node) => {
          const status = node.parentElement?.querySelector('.gk-control-status') as HTMLElement;
          const began = performance.now();
          (node as HTMLElement).click();
          while (status.dataset['state'] !== 'done' && performance.now() - began < 5000) await new Promise((done) => setTimeout(done, 1));
          const took = performance.now() - began;
          status.dataset['state'] = '';
          return took;
        }),
      );
    }
    const busyStill = await notebook.busy();
    await notebook.finish();
    report('control', { presses: PRESSES, p50_ms: percentile(latencies, 0.5), max_ms: percentile(latencies, 1), busy_to_the_end: String(busyStill) });

    await page.evaluate(() => {
      for (const node of document.querySelectorAll<HTMLElement>('.gk-panel')) node.style.display = 'none';
    });
    await page.waitForTimeout(1500);
    const before = notebook.commMessages;
    await page.waitForTimeout(5000);
    report('hidden', { seconds: 5, messages: notebook.commMessages - before });
  } finally {
    await server.stop();
  }
});
