// `%%cuda` cells under the notebook's own edits, the switches in the settings, and another kernel.

import { expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const CUDA = 'text/x-cuda';
const PYTHON = 'text/x-ipython';
const EDITOR = { id: 'pygpukit:editor', title: 'pygpukit: CUDA cells' };
const STATUS = { id: 'pygpukit:status', title: 'pygpukit: GPU status' };
const KERNEL = '%%cuda\n__global__ void twice(float* x) { x[threadIdx.x] *= 2; }';
const BROKEN = '%%cuda\n__global__ void broken() { missing(); }';
/** How many pages the kernel believes in. */
const FOLLOWERS = 'from pygpukit.jupyter import control\nprint(len(control._feed._pages))';
const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';

const lab = useLab({
  prefix: '/user/ada/',
  notebooks: { 'edits.ipynb': [KERNEL, 'a = 1'], 'settings.ipynb': [SETUP, BROKEN], 'kernel.ipynb': [SETUP, BROKEN] },
});

async function expectMimes(...mimes: readonly string[]): Promise<void> {
  await expect.poll(() => Promise.all(mimes.map((_, at) => lab.cells.mime(at)))).toEqual(mimes);
  await expect(lab.cells.all()).toHaveCount(mimes.length);
}

/** The editor's colours follow the language: the word is a keyword of CUDA, or it is none. */
async function expectColoured(index: number): Promise<void> {
  const keyword = await lab.cells.themeColour('--jp-mirror-editor-keyword-color');
  await expect.poll(() => lab.cells.colour(index, '__global__')).toBe(keyword);
}

test('a pasted, split or merged cell has the language of its text', async () => {
  const { page } = lab.notebook;
  const command = (id: string): Promise<unknown> => page.evaluate((name) => window.jupyterapp.commands.execute(name), `notebook:${id}`);
  await lab.open('edits.ipynb');
  await expectMimes(CUDA, PYTHON);
  await lab.cells.activate(0);
  await command('copy-cell');
  await lab.cells.activate(1);
  await command('paste-cell-below');
  await expectMimes(CUDA, PYTHON, CUDA);
  await expectColoured(2);

  // Split below the magic: what is left of it is CUDA, the code alone is not.
  await lab.cells.setCursor(2, 1, 0);
  await command('split-cell-at-cursor');
  await expectMimes(CUDA, PYTHON, CUDA, PYTHON);
  expect(await lab.cells.source(3)).toBe(KERNEL.split('\n')[1]);
  await lab.cells.activate(2);
  await command('merge-cell-below');
  await expectMimes(CUDA, PYTHON, CUDA);
  await expectColoured(2);

  // Merged below a line of Python the magic is not at the top any more.
  await lab.cells.activate(1);
  await command('merge-cell-below');
  await expectMimes(CUDA, PYTHON);
  expect(await lab.cells.source(1)).toContain('%%cuda');
});

test('the switches take effect at once, off and on again', async () => {
  const errors = lab.cells.at(1).locator('.cm-lintRange-error');
  const item = lab.notebook.page.locator('.pygpukit-StatusItem');
  await lab.open('settings.ipynb', 0, 1);
  await expect(errors).toHaveText('missing');
  await expect(item).toHaveText(/^GPU \d/);

  await lab.notebook.set(EDITOR, 'diagnostics', false);
  await expect(errors).toHaveCount(0);
  await lab.notebook.set(EDITOR, 'diagnostics', true);
  await expect(errors).toHaveText('missing');

  await lab.notebook.set(EDITOR, 'cudaMode', false);
  await expectMimes(PYTHON, PYTHON);
  await expect(errors).toHaveCount(0);
  await lab.notebook.set(EDITOR, 'cudaMode', true);
  await expectMimes(PYTHON, CUDA);
  await expectColoured(1);
  await expect(errors).toHaveText('missing');

  // Off: what the kernel holds now is not told.
  await lab.notebook.set(STATUS, 'live', false);
  await expect.poll(() => lab.notebook.execute(FOLLOWERS)).toBe('0\n');
  const last = (await item.textContent()) ?? '';
  await lab.notebook.execute('import time\nheld = gp.zeros(1 << 22)\ntime.sleep(1.5)');
  await expect(item).toHaveText(last, { timeout: 1 });
  expect(await lab.notebook.execute('gp.lab._PATIENCE_S = 0.5\ngp.lab.open("workbench")')).toContain('no page listens');
  await lab.notebook.set(STATUS, 'live', true);
  await expect(item).toContainText('MiB');
});

test('another kernel knows nothing of what the last one said, and the cells stay CUDA', async () => {
  const errors = lab.cells.at(1).locator('.cm-lintRange-error');
  const item = lab.notebook.page.locator('.pygpukit-StatusItem');
  await lab.open('kernel.ipynb', 0, 1);
  await expect(errors).toHaveText('missing');
  await expect(item).toHaveText(/^GPU \d/);
  await lab.notebook.changeKernel('python3');
  await expect(errors).toHaveCount(0);
  await expect(item).toHaveText('GPU');
  await expectMimes(PYTHON, CUDA);
  await lab.cells.run(0);
  await lab.cells.run(1);
  await expect(errors).toHaveText('missing');
  await expect(item).toHaveText(/^GPU \d/);
});
