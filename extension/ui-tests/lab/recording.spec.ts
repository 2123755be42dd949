// The workbench at work: two tenants, live dashboards, and controls that act while a cell is busy. tools/make_recording.py has this
// test filmed (PYGPUKIT_FRAMES: where the frames go) and makes one moving picture of it.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Locator, type Page, expect, test } from '@playwright/test';
import { Cells } from '../support/cells.ts';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';

const FRAMES = process.env['PYGPUKIT_FRAMES'];
const SIZE = { width: 1400, height: 1060 };
const FRAME_MS = 250;

const SOURCES = [
  '%load_ext pygpukit\nimport time\nimport pygpukit as gp\nfrom pygpukit.scheduler import Scheduler\n\nweights = gp.zeros((2048, 1024))\nscheduler = Scheduler(total_memory="1GB", workers=2)',
  '%%cuda\n__global__ void scale(float* x, float factor, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= factor;\n}',
  'def work(seconds, pause_s):\n    end = time.monotonic() + seconds\n    x = gp.ones(1 << 20)\n    while time.monotonic() < end:\n        x = gp.sqrt(x + x)\n        time.sleep(pause_s)\n\n\n' +
    'train = scheduler.submit(work, 120, 0.01, name="train",\n    memory="256MB", bandwidth=0.5, policy="guaranteed")\n' +
    'serve = scheduler.submit(work, 120, 0.03, name="serve",\n    bandwidth=0.2)\n' +
    'export = scheduler.submit(work, 1, 0.02, name="export",\n    bandwidth=0.5)\nscheduler.start()',
  'scale(weights, factor=0.5, n=weights.size)\ntime.sleep(120)  # a busy cell: the controls act all the same',
] as const;

/** The pointer, which no screenshot has. */
function drawPointer(): void {
  const pointer = document.createElement('div');
  pointer.innerHTML =
    '<svg width="22" height="26" viewBox="0 0 22 26"><path d="M2 2v19l5-4 3 7 4-2-3-6h7z" fill="#111" stroke="#fff" stroke-width="1.6"/></svg>';
  pointer.style.cssText = 'position:fixed;z-index:99999;pointer-events:none;left:0;top:0';
  document.body.append(pointer);
  addEventListener('mousemove', ({ clientX, clientY }) => (pointer.style.transform = `translate(${clientX}px, ${clientY}px)`), true);
}

class Camera {
  private count = 0;

  constructor(
    private readonly page: Page,
    private readonly folder: string | undefined,
  ) {
    if (folder) mkdirSync(folder, { recursive: true });
  }

  /** Films for so long; a test that is not filmed goes on at once. */
  async film(ms: number): Promise<void> {
    if (!this.folder) return;
    for (const end = Date.now() + ms; Date.now() < end; ) {
      const next = Date.now() + FRAME_MS;
      await this.page.screenshot({ path: join(this.folder, `${String(this.count++).padStart(4, '0')}.png`) });
      await this.page.waitForTimeout(Math.max(0, next - Date.now()));
    }
  }

  /** Goes to something, to be seen there, and clicks it. */
  async click(target: Locator, position?: { x: number; y: number }): Promise<void> {
    await target.hover(position ? { position } : {});
    await this.film(500);
    await target.click(position ? { position } : {});
    await this.film(500);
  }
}

test('a share is raised, a priority set, a task paused and one cancelled while a cell is busy', async ({ browser }) => {
  const server = await LabServer.start('JupyterLab Light');
  try {
    server.putNotebook('workbench.ipynb', SOURCES);
    const page = await browser.newPage({ viewport: SIZE });
    const notebook = new NotebookPage(page);
    const cells = new Cells(page);
    const camera = new Camera(page, FRAMES);
    await notebook.open(server.notebookUrl('workbench.ipynb'));
    test.skip(!(await notebook.subshells()), 'this kernel has no subshells');
    await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
    await page.evaluate(drawPointer);
    await page.mouse.move(300, 700);
    await camera.film(750);
    for (const at of [0, 1]) {
      await cells.run(at);
      await camera.film(500);
    }
    for (const view of ['memory', 'scheduler']) {
      await page.evaluate((kind) => window.jupyterapp.commands.execute('pygpukit:open-view', { view: kind }), view);
      await page.locator(`.gk-dashboard-pane .gk-panel[data-state="live"]`).nth(view === 'memory' ? 0 : 1).waitFor();
    }
    await notebook.toFront();
    await camera.film(1000);
    await cells.run(2);
    const scheduler = page.locator('.gk-dashboard-pane .gk-panel[aria-label="GPU scheduler"]');
    await expect(scheduler.locator('.gk-lane-names li')).toHaveText(['train', 'serve', 'export']);
    await camera.film(4000);
    await cells.activate(3);
    await notebook.command('notebook:run-cell');
    await camera.film(1500);
    const status = scheduler.locator('.gk-control-status');
    // Its bar grows to the left of the window.
    await expect(async () => {
      await camera.click(scheduler.locator('.gk-gantt canvas'), { x: 40, y: 39 });
      await expect(scheduler.locator('.gk-chosen')).toContainText('Chosen: serve', { timeout: 1000 });
    }).toPass({ timeout: 60_000 });
    await camera.click(scheduler.getByLabel('Set share: such as 30 %'));
    for (const key of '45 %') {
      await page.keyboard.type(key);
      await camera.film(FRAME_MS);
    }
    await page.keyboard.press('Enter');
    await expect(status).toHaveText('serve is promised 45 % of the device');
    await camera.film(2000);
    await camera.click(scheduler.getByLabel('Set priority: such as 5'));
    await page.keyboard.type('5');
    await page.keyboard.press('Enter');
    await expect(status).toHaveText('serve has priority 5');
    await camera.film(2500);
    await camera.click(scheduler.getByRole('button', { name: 'Pause train' }));
    await expect(status).toHaveText('train is paused');
    await camera.film(2500);
    await camera.click(scheduler.getByRole('button', { name: 'Resume train' }));
    await expect(status).toHaveText('train goes on');
    await camera.film(1500);
    await camera.click(scheduler.getByRole('button', { name: 'Cancel the chosen task' }));
    await expect(scheduler.locator('.gk-phases li[data-phase="Cancelled"]')).toHaveAttribute('data-count', '1');
    expect(await page.locator('.jp-InputPrompt', { hasText: '[*]' }).count(), 'the cell is busy all the while').toBe(1);
    await camera.film(3000);
    expect(notebook.faults).toEqual([]);
  } finally {
    await server.stop();
  }
});
