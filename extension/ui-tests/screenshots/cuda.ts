// CUDA cells in the lab: an error underlined with its message, and the code of a kernel beside its cell.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { Cells } from '../support/cells.ts';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';

const IMAGES = join(import.meta.dirname, '../../../docs/images');
const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx, y, z = gp.ones(4096), gp.ones(4096), gp.zeros(4096)';
const AXPY = `%%cuda -i x,y,a=2.0,n=4096 -o z --block 128
// z = a x + y, one element a thread
__global__ void axpy(const float* x, const float* y, float* z, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}`;
const BROKEN = `%%cuda
__global__ void total(const float* x, float* sum) {
    float v = x[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
    if (threadIdx.x == 0) *sum = vv;
}`;

for (const [name, theme] of [
  ['light', 'JupyterLab Light'],
  ['dark', 'JupyterLab Dark'],
] as const) {
  test(`CUDA cells, ${name}`, async ({ browser }) => {
    const server = await LabServer.start(theme);
    try {
      server.putNotebook('cuda.ipynb', [SETUP, AXPY, BROKEN]);
      const page = await browser.newPage({ viewport: { width: 1500, height: 900 } });
      const notebook = new NotebookPage(page);
      const cells = new Cells(page);
      await notebook.open(server.notebookUrl('cuda.ipynb'));
      await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
      await cells.run(0);
      await cells.run(2);
      await cells.run(1);
      await cells.activate(1);
      await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-assembly'));
      await page.locator('.gk-asm-line, .gk-asm-said').first().waitFor();
      await page.locator('.gk-asm-line').filter({ hasText: 'fma' }).first().click({ timeout: 2_000 }).catch(() => undefined);
      await cells.at(2).locator('.cm-lintRange-error').first().hover();
      await page.locator('.cm-tooltip-lint').waitFor();
      mkdirSync(IMAGES, { recursive: true });
      await page.screenshot({ path: join(IMAGES, `lab-${name}.png`) });
      await cells.at(2).getByText('__shfl_down_sync').hover();
      await page.locator('.gk-hover').waitFor();
      await page.screenshot({ path: join(IMAGES, `lab-hover-${name}.png`) });
    } finally {
      await server.stop();
    }
  });
}
