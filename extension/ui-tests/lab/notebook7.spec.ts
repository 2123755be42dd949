// The extension in Notebook 7, which has no lab shell: what needs none works, and nothing fails.

import { expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const SETUP = '%load_ext pygpukit\nimport time\nimport pygpukit as gp\nx = gp.ones(64)';
const CUDA = '%%cuda -i x,n=64\n__global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }';
const VIEW = 'gp.dashboard.memory()';
const CELLS = 'gp.dashboard.cells()';
/** What Notebook 7.6 reports when it starts, also without any extension. */
const OWN_FAULT = "uncaught: Cannot read properties of undefined (reading 'schema')";
/** What ipywidgets says in the console of a view whose kernel has ended. */
const NO_MODEL = /^console: .*widget model not found/i;
const [SETUP_AT, CUDA_AT, VIEW_AT, CELLS_AT] = [0, 1, 2, 3];

const lab = useLab({ app: 'notebook', notebooks: { 'cuda.ipynb': [SETUP, CUDA, VIEW, CELLS] }, known: [OWN_FAULT, NO_MODEL] });

test.beforeEach(() => lab.open('cuda.ipynb'));

test('every plugin starts, and the command that needs the lab is not there', async () => {
  const { plugins, commands } = await lab.notebook.page.evaluate(() => {
    const app = window.jupyterapp as unknown as {
      listPlugins(): string[];
      isPluginActivated(id: string): boolean;
      commands: { listCommands(): string[] };
    };
    const mine = (id: string): boolean => id.startsWith('pygpukit:');
    return {
      plugins: app.listPlugins().filter(mine).filter((id) => app.isPluginActivated(id)).sort(),
      commands: app.commands.listCommands().filter(mine).sort(),
    };
  });
  expect(plugins).toEqual(['pygpukit:assembly', 'pygpukit:chat', 'pygpukit:editor', 'pygpukit:pictures', 'pygpukit:status', 'pygpukit:views', 'pygpukit:workbench']);
  expect(commands).toEqual(['pygpukit:explain-cell', 'pygpukit:open-assembly', 'pygpukit:open-view', 'pygpukit:show-status']);
});

test('a CUDA cell is coloured as CUDA, and its compile error underlined', async () => {
  await expect.poll(() => lab.cells.mime(CUDA_AT)).toBe('text/x-cuda');
  const keyword = await lab.cells.themeColour('--jp-mirror-editor-keyword-color');
  await expect.poll(() => lab.cells.colour(CUDA_AT, '__global__')).toBe(keyword);
  await lab.cells.run(SETUP_AT);
  await lab.cells.write(CUDA_AT, CUDA.replace('*= 2', '*= missing'));
  await lab.cells.run(CUDA_AT);
  await expect(lab.cells.at(CUDA_AT).locator('.cm-lintRange-error')).toHaveText('missing');
});

test('the code of a kernel opens in the side area', async () => {
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(CUDA_AT);
  await lab.notebook.command('pygpukit:open-assembly');
  await expect(lab.notebook.page.locator('.gk-asm select')).toHaveValue('twice');
});

test('a dashboard draws, also while a cell is busy, and the status is shown', async () => {
  const { page } = lab.notebook;
  const view = page.locator('.gk-panel');
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(VIEW_AT);
  await view.scrollIntoViewIfNeeded();
  await expect(view).toHaveAttribute('data-state', 'live');
  const before = Number(await view.getAttribute('data-used'));
  await lab.notebook.keepBusy('held = gp.zeros(1 << 20)');
  await expect.poll(async () => Number(await view.getAttribute('data-used'))).toBeGreaterThan(before);
  expect(await lab.notebook.busy()).toBe(true);
  await lab.notebook.command('pygpukit:show-status');
  await expect(page.locator('.jp-Dialog')).toContainText('multiprocessors');
  await page.locator('.jp-Dialog').getByRole('button', { name: 'Close' }).click();
  expect(await lab.notebook.finish()).toBe('');
});

test('executed cells carry badges, and a row of the table goes to its cell', async () => {
  const { page } = lab.notebook;
  for (const at of [SETUP_AT, CUDA_AT, CELLS_AT]) await lab.cells.run(at);
  await lab.cells.at(CELLS_AT).scrollIntoViewIfNeeded();
  await expect(lab.cells.at(CUDA_AT).locator('.gk-badge')).toContainText('1 launch');
  const cell = lab.cells.at(CUDA_AT);
  const count = (await cell.locator('.jp-InputPrompt').textContent())?.trim().slice(0, -1);
  // It is marked for a moment only.
  await cell.evaluate((node) => {
    const marked = (): void => void (node.classList.contains('gk-revealed') && node.setAttribute('data-revealed', 'yes'));
    new MutationObserver(marked).observe(node, { attributeFilter: ['class'] });
  });
  await page.locator('.gk-panel tbody tr', { hasText: `In ${count}` }).click();
  await expect(cell).toHaveAttribute('data-revealed', 'yes');
});

test('a notebook that is opened again shows a view as it was saved, until its cell runs', async () => {
  const cell = lab.cells.at(VIEW_AT);
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(VIEW_AT);
  await expect(cell.locator('.gk-panel')).toHaveCount(1);
  await lab.notebook.save();
  await lab.notebook.page.goto('about:blank');
  await lab.server.endKernels();
  await lab.open('cuda.ipynb');
  await expect(cell.locator('.gk-saved-note')).toBeVisible();
  await expect(cell.locator('.gk-saved svg')).toBeVisible();
  await expect(cell).not.toContainText(/Error displaying widget|Loading widget/);
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(VIEW_AT);
  await expect(cell.locator('.gk-panel')).toHaveCount(1);
  await expect(cell.locator('.gk-saved')).toHaveCount(0);
});
