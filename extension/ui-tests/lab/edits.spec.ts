// `%%cuda` cells under the notebook's own edits, the switches in the settings, and another kernel.

import { expect, test } from '@playwright/test';
import { Cells } from '../support/cells.ts';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';

const CUDA = 'text/x-cuda';
const PYTHON = 'text/x-ipython';
const EDITOR = { id: 'pygpukit:editor', title: 'pygpukit: CUDA cells' };
const STATUS = { id: 'pygpukit:status', title: 'pygpukit: GPU status' };
const KERNEL = '%%cuda\n__global__ void twice(float* x) { x[threadIdx.x] *= 2; }';
const BROKEN = '%%cuda\n__global__ void broken() { missing(); }';
const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';

let server: LabServer;
let notebook: NotebookPage;
let cells: Cells;

test.beforeAll(async ({ browser }) => {
  server = await LabServer.start('JupyterLab Light', '/user/ada/');
  server.putNotebook('edits.ipynb', [KERNEL, 'a = 1']);
  server.putNotebook('settings.ipynb', [SETUP, BROKEN]);
  server.putNotebook('kernel.ipynb', [SETUP, BROKEN]);
  notebook = new NotebookPage(await browser.newPage());
  cells = new Cells(notebook.page);
});

test.afterAll(async () => {
  await notebook?.page.close();
  await server?.stop();
});

test.afterEach(async ({}, info) => {
  if (info.status !== info.expectedStatus) await notebook.page.screenshot({ path: info.outputPath('notebook.png') });
  expect(notebook.faults.splice(0)).toEqual([]);
});

async function expectMimes(...mimes: readonly string[]): Promise<void> {
  await expect.poll(() => Promise.all(mimes.map((_, at) => cells.mime(at)))).toEqual(mimes);
  await expect(cells.all()).toHaveCount(mimes.length);
}

/** The editor's colours follow the language: the word is a keyword of CUDA, or it is none. */
async function expectColoured(index: number): Promise<void> {
  const keyword = await cells.themeColour('--jp-mirror-editor-keyword-color');
  await expect.poll(() => cells.colour(index, '__global__')).toBe(keyword);
}

test('a pasted, split or merged cell has the language of its text', async () => {
  const { page } = notebook;
  const command = (id: string): Promise<unknown> => page.evaluate((name) => window.jupyterapp.commands.execute(name), `notebook:${id}`);
  await notebook.open(server.notebookUrl('edits.ipynb'));
  await expectMimes(CUDA, PYTHON);
  await cells.activate(0);
  await command('copy-cell');
  await cells.activate(1);
  await command('paste-cell-below');
  await expectMimes(CUDA, PYTHON, CUDA);
  await expectColoured(2);

  // Split below the magic: what is left of it is CUDA, the code alone is not.
  await cells.setCursor(2, 1, 0);
  await command('split-cell-at-cursor');
  await expectMimes(CUDA, PYTHON, CUDA, PYTHON);
  expect(await cells.source(3)).toBe(KERNEL.split('\n')[1]);
  await cells.activate(2);
  await command('merge-cell-below');
  await expectMimes(CUDA, PYTHON, CUDA);
  await expectColoured(2);

  // Merged below a line of Python the magic is not at the top any more.
  await cells.activate(1);
  await command('merge-cell-below');
  await expectMimes(CUDA, PYTHON);
  expect(await cells.source(1)).toContain('%%cuda');
});

test('the switches take effect at once, off and on again', async () => {
  const errors = cells.at(1).locator('.cm-lintRange-error');
  const item = notebook.page.locator('.pygpukit-StatusItem');
  await notebook.open(server.notebookUrl('settings.ipynb'));
  await cells.run(0);
  await cells.run(1);
  await expect(errors).toHaveText('missing', { timeout: 15_000 });
  await expect(item).toHaveText(/^GPU \d/);

  await notebook.set(EDITOR, 'diagnostics', false);
  await expect(errors).toHaveCount(0);
  await notebook.set(EDITOR, 'diagnostics', true);
  await expect(errors).toHaveText('missing');

  await notebook.set(EDITOR, 'cudaMode', false);
  await expectMimes(PYTHON, PYTHON);
  await expect(errors).toHaveCount(0);
  await notebook.set(EDITOR, 'cudaMode', true);
  await expectMimes(PYTHON, CUDA);
  await expectColoured(1);
  await expect(errors).toHaveText('missing');

  // Off: what the kernel holds now is not told.
  await notebook.set(STATUS, 'live', false);
  const last = (await item.textContent()) ?? '';
  await notebook.execute('import time\nheld = gp.zeros(1 << 22)\ntime.sleep(1.5)');
  await expect(item).toHaveText(last, { timeout: 1 });
  await notebook.set(STATUS, 'live', true);
  await expect(item).toContainText('MiB');
});

test('another kernel knows nothing of what the last one said, and the cells stay CUDA', async () => {
  const errors = cells.at(1).locator('.cm-lintRange-error');
  const item = notebook.page.locator('.pygpukit-StatusItem');
  await notebook.open(server.notebookUrl('kernel.ipynb'));
  await cells.run(0);
  await cells.run(1);
  await expect(errors).toHaveText('missing', { timeout: 15_000 });
  await expect(item).toHaveText(/^GPU \d/);
  await notebook.changeKernel('python3');
  await expect(errors).toHaveCount(0);
  await expect(item).toHaveText('GPU');
  await expectMimes(PYTHON, CUDA);
  await cells.run(0);
  await cells.run(1);
  await expect(errors).toHaveText('missing', { timeout: 15_000 });
  await expect(item).toHaveText(/^GPU \d/);
});
