// The workbench beside a notebook: by the status bar, from Python, and again after a reload; the device in the status bar.

import { type Locator, expect, test } from '@playwright/test';
import { FakeNvml } from '../support/fake-nvml.ts';
import { useLab } from '../support/lab-test.ts';

// A page's answer is waited for as long as a busy machine may need.
const SETUP = '%load_ext pygpukit\nimport time\nimport pygpukit as gp\nx = gp.ones(64)\ngp.lab._PATIENCE_S = 60';
const CUDA = '%%cuda\n__global__ void twice(float* x) { x[threadIdx.x] *= 2; }';
/** Opens a view and is busy until it is interrupted. */
const OPEN = 'gp.lab.open("memory")\ntry:\n    time.sleep(120)\nexcept KeyboardInterrupt:\n    pass';
/** Four tasks that ran. */
const TASKS = 's = gp.scheduler.Scheduler()\nfor n in range(4): s.submit(lambda: gp.ones(8) + 1, name=f"task {n}").result()';
const VIEW = 'gp.dashboard.memory()';
const SETTLE_MS = 300;
const UNHEARD = 'from pygpukit import lab\nlab._PATIENCE_S = 0.1\nlab.open("memory")';
/** How many pages the kernel believes in; with a launch, as a page that left without a word is asked when it has news. */
const FOLLOWERS = 'from pygpukit.jupyter import control\ngp.ones(1) + 1\nprint(len(control._feed._pages))';
const [SETUP_AT, CUDA_AT, OPEN_AT] = [0, 1, 2];

const lab = useLab({
  prefix: '/user/ada/',
  notebooks: {
    ...Object.fromEntries(['status', 'click', 'reload', 'busy', 'python'].map((name) => [`${name}.ipynb`, [SETUP, CUDA, OPEN]])),
    'low.ipynb': [SETUP, CUDA, TASKS],
    'restart.ipynb': [SETUP],
    'timeline.ipynb': [SETUP],
    'unheard.ipynb': [UNHEARD],
    'agree.ipynb': [SETUP, VIEW],
    'mine.ipynb': [SETUP, 'x + 1'],
    'restarted.ipynb': [SETUP, 'x + 1'],
    'theirs.ipynb': ['1', '2'],
  },
  // The lab asks for a notebook's first name again, and its debugger for a kernel that is being restarted.
  known: [/404 \(Not Found\) .*\/api\/contents\/Untitled\d*\.ipynb/, /Could not restore the debugger state/],
});

const item = (): Locator => lab.notebook.page.locator('.pygpukit-StatusItem');
const panes = (): Locator => lab.notebook.page.locator('.gk-dashboard-pane');
const dashboard = (title: string): Locator => panes().locator(`.gk-panel[aria-label="${title}"]`);
const assembly = (): Locator => lab.notebook.page.locator('.gk-asm');
const assemblyTab = (): Locator => lab.notebook.page.locator('.lm-DockPanel-tabBar .lm-TabBar-tab', { hasText: 'PTX and SASS' });

/** They stand in one column right of the notebook, which is still to be seen. */
async function expectColumn(views: readonly Locator[]): Promise<void> {
  for (const view of views) {
    await expect(view).toBeVisible();
    await expect(async () => {
      const [beside, from] = [await lab.notebook.page.locator('.jp-NotebookPanel:visible').boundingBox(), await view.boundingBox()];
      expect(from?.x).toBeGreaterThan((beside?.x ?? Infinity) + (beside?.width ?? 0) - 2);
    }).toPass({ timeout: 60_000 });
  }
}

async function expectLive(view: Locator): Promise<void> {
  await expect(view).toHaveAttribute('data-state', 'live');
}

test('the timeline of the profile that ended last stands beside the notebook, and the next one takes its place', async () => {
  await lab.open('timeline.ipynb', SETUP_AT);
  await lab.notebook.execute('gp.lab.open("timeline")');
  const timeline = dashboard('Timeline');
  await expectColumn([timeline]);
  await expect(timeline.locator('.gk-message')).toHaveText(/No profile has ended yet/);
  await lab.notebook.execute('with gp.profiling.profile() as p:\n    y = x + 1');
  await expect(timeline.locator('.gk-device')).toHaveText(/^\d+ records in/);
  await expect(timeline.locator('tbody tr').first()).toBeVisible();
  await lab.notebook.execute('with gp.profiling.profile() as q:\n    for _ in range(50): y = y * 2');
  await expect(timeline.locator('tbody tr', { hasText: 'Mul' })).toHaveCount(1);
});

test('the status bar has the utilisation and temperature that NVML tells, and only what it tells', async () => {
  const nvml = new FakeNvml();
  try {
    await lab.open('status.ipynb', SETUP_AT);
    await expect(item()).toHaveText(/^GPU [\d.]+ \w+, \d+ launch(es)?$/);
    await lab.notebook.execute(nvml.code);
    await expect(item()).toHaveText(/^GPU 61 %, 57 \u00b0C, [\d.]+ \w+, \d+ launch(es)?$/);
    await lab.notebook.execute('import os; os.environ["FAKE_NVML_MISSING"] = "utilization"');
    await expect(item()).toHaveText(/^GPU 57 \u00b0C, [\d.]+ \w+, \d+ launch(es)?$/);
  } finally {
    nvml.remove();
  }
});

/** Whether what is kept of the lab has all three beside the notebook. */
function isLaidOut(workspace: string): boolean {
  const { data } = JSON.parse(workspace) as { data?: Record<string, { main?: unknown }> };
  const main = JSON.stringify(data?.['layout-restorer:data']?.main ?? null);
  return ['pygpukit-views:memory', 'pygpukit-views:scheduler', 'pygpukit-assembly'].every((name) => main.includes(name));
}

test("the launcher's card makes a notebook that begins calmly, with the workbench beside it", async () => {
  const { page } = lab.notebook;
  await lab.open('status.ipynb');
  await page.evaluate(() => window.jupyterapp.commands.execute('launcher:create'));
  await page.locator('.jp-LauncherCard', { hasText: 'GPU workbench' }).click();
  await expectColumn([dashboard('GPU memory'), dashboard('GPU scheduler')]);
  await expectLive(dashboard('GPU memory'));
  await expect(lab.cells.at(0).locator('.jp-OutputArea-output')).toHaveText(/^(sim|cuda):0 .*multiprocessors/);
  await expect(lab.cells.at(1).locator('.cm-content')).toBeEmpty();
});

test("the launcher's card for a chat makes a notebook that asks before it fetches", async () => {
  const { page } = lab.notebook;
  await lab.open('status.ipynb');
  await page.evaluate(() => window.jupyterapp.commands.execute('launcher:create'));
  await page.locator('.jp-LauncherCard', { hasText: 'Chat with a model' }).click();
  await expect(lab.cells.at(0).locator('.cm-content')).toContainText('gp.llm.chat("qwen2.5-coder-0.5b-instruct")  # fetched once');
  await expect(lab.cells.at(0).locator('.jp-InputPrompt')).toHaveText(/^\[ \]:?$/);
});

test('a click on it opens memory, scheduler and, behind a tab, code in a column, once', async () => {
  await lab.open('click.ipynb', SETUP_AT, CUDA_AT);
  await expect(item()).toHaveText(/^GPU \d/);
  for (let clicks = 0; clicks < 2; clicks++) {
    await item().click();
    await expectColumn([dashboard('GPU memory'), dashboard('GPU scheduler')]);
    await expect(assembly()).toBeHidden();
  }
  await expect(panes()).toHaveCount(2);
  await expectLive(dashboard('GPU memory'));
  await assemblyTab().click();
  await expectColumn([dashboard('GPU memory'), assembly()]);
});

test('in a window 950 px high the memory map and the lanes of tasks are in sight', async () => {
  const { page } = lab.notebook;
  await page.setViewportSize({ width: 1600, height: 950 });
  try {
    await lab.open('low.ipynb', SETUP_AT, CUDA_AT, OPEN_AT);
    await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-workbench'));
    await expectColumn([dashboard('GPU memory'), dashboard('GPU scheduler')]);
    for (const picture of ['.gk-map canvas', '.gk-gantt canvas']) {
      await expect(panes().locator(picture)).toBeInViewport({ ratio: 1 });
    }
  } finally {
    await page.setViewportSize({ width: 1280, height: 900 });
  }
});

test('after a reload the workbench is there again, and live', async () => {
  const { page } = lab.notebook;
  await lab.open('reload.ipynb', SETUP_AT, CUDA_AT);
  const kept = page.waitForResponse((one) => one.url().includes('/api/workspaces/') && isLaidOut(one.request().postData() ?? '{}'));
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-workbench'));
  const views = [dashboard('GPU memory'), dashboard('GPU scheduler')];
  await expectColumn(views);
  await lab.notebook.save();
  await kept;
  await lab.notebook.open(lab.server.notebookUrl('reload.ipynb', 'kept'));
  await expectColumn(views);
  await expect(panes()).toHaveCount(2);
  await expect(assemblyTab()).toBeVisible();
  await expectLive(dashboard('GPU memory'));
  await expectLive(dashboard('GPU scheduler'));
  await expect.poll(() => lab.notebook.execute(FOLLOWERS)).toBe('1\n');
  await lab.notebook.execute('grown = gp.zeros(1 << 22)');
  await expect.poll(async () => Number(await dashboard('GPU memory').getAttribute('data-used'))).toBeGreaterThan(1 << 24);
});

test('after a reload while a cell is busy the views are there again when it ends, and Python opens others', async () => {
  const { page } = lab.notebook;
  await lab.open('busy.ipynb', SETUP_AT);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'memory' }));
  await expectLive(dashboard('GPU memory'));
  await lab.notebook.toFront();
  await lab.notebook.save();
  await lab.notebook.keepBusy();
  await page.goto(lab.server.notebookUrl('busy.ipynb', 'kept'));
  await expect(page.locator('.gk-dashboard-said')).toContainText('it answers when the running cell ends');
  lab.notebook.release();
  await expectColumn([dashboard('GPU memory')]);
  await expectLive(dashboard('GPU memory'));
  await expect(item()).toHaveText(/^GPU \d/);
  expect(await lab.notebook.execute('gp.lab.open("scheduler")')).toBe('');
  await expectLive(dashboard('GPU scheduler'));
});

test('a view that was opened before the first save survives the new name, and a reload after it', async () => {
  const { page } = lab.notebook;
  await lab.open('restart.ipynb');
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('notebook:create-new', { kernelName: 'python3' });
    await window.jupyterapp.shell.currentWidget.sessionContext.ready;
  });
  await lab.cells.write(0, SETUP);
  await lab.cells.run(0);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'memory' }));
  await expectLive(dashboard('GPU memory'));
  await page.locator('.jp-NotebookPanel:visible .jp-Cell').first().click();
  const kept = page.waitForResponse((one) => one.url().includes('/api/workspaces/') && one.request().postData()?.includes('"notebook:named.ipynb"') === true);
  await lab.notebook.command('docmanager:save');
  const dialog = page.locator('.jp-Dialog');
  await dialog.getByPlaceholder('File name').fill('named.ipynb');
  await dialog.getByRole('button', { name: 'Rename and Save' }).click();
  await expect(page.locator('.lm-TabBar-tabLabel', { hasText: 'named.ipynb' })).toBeVisible();
  await expectLive(dashboard('GPU memory'));
  await kept;
  await lab.notebook.open(lab.server.notebookUrl('named.ipynb', 'kept'));
  await expectColumn([dashboard('GPU memory')]);
  await expectLive(dashboard('GPU memory'));
});

test('a restarted kernel has its views again when it has loaded the extension', async () => {
  const { page } = lab.notebook;
  await lab.open('restart.ipynb', SETUP_AT);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'memory' }));
  await expectColumn([dashboard('GPU memory')]);
  await lab.cells.restartKernel();
  await expect(page.locator('.gk-dashboard-said')).toContainText('%load_ext pygpukit');
  await lab.cells.run(SETUP_AT);
  await expectColumn([dashboard('GPU memory')]);
  await expectLive(dashboard('GPU memory'));
});

test('Python opens a view beside the notebook while its cell runs', async () => {
  await lab.open('python.ipynb', SETUP_AT);
  // A kernel that answers between cells hears of a page only then.
  if (!(await lab.notebook.subshells())) await expect(item()).toHaveText(/^GPU \d/);
  const ended = lab.cells.run(OPEN_AT);
  await expectColumn([dashboard('GPU memory')]);
  await expect(lab.cells.at(OPEN_AT).locator('.jp-InputPrompt')).toHaveText('[*]:', { timeout: 1 });
  await lab.notebook.page.evaluate(() => window.jupyterapp.commands.execute('notebook:interrupt-kernel'));
  await ended;
  for (const view of ['device', 'cells', 'scheduler', 'assembly']) expect(await lab.notebook.execute(`gp.lab.open("${view}")`)).toBe('');
  await expect(panes()).toHaveCount(4);
  await expectColumn([dashboard('GPU memory'), assembly()]); // the others are tabs behind the last one
  expect(await lab.notebook.execute('gp.lab.open("workbench")')).toBe('');
  await expect(panes()).toHaveCount(4);
});

test('a view in a cell and the same one beside the notebook show the same numbers', async () => {
  const { page } = lab.notebook;
  await lab.open('agree.ipynb', SETUP_AT, 1);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'memory' }));
  await expectLive(dashboard('GPU memory'));
  const views = page.locator('.gk-panel[aria-label="GPU memory"]');
  await expect(views).toHaveCount(2);
  for (const view of await views.all()) await expectLive(view);
  /** What each draws, from screen to screen, until both have drawn so many moments: the record's number and the bytes. */
  const [inCell = [], beside = []] = await views.evaluateAll(
    (panels, moments) =>
      new Promise<string[][]>((done) => {
        const drawn = panels.map(() => new Set<string>());
        const look = (): void => {
          panels.forEach((panel, i) => drawn[i]?.add(`#${(panel as HTMLElement).dataset['seq']} ${(panel as HTMLElement).dataset['used']}`));
          if (drawn.every(({ size }) => size >= moments)) done(drawn.map((one) => [...one]));
          else requestAnimationFrame(look);
        };
        look();
      }),
    20,
  );
  // One may have missed a moment that the other drew, and draws the next.
  expect(inCell.filter((moment) => beside.includes(moment)).length).toBeGreaterThan(10);
});

test('keys that are typed in a view of a cell are for the view: the lab moves, cuts and inserts no cell', async () => {
  const { page } = lab.notebook;
  await lab.open('agree.ipynb', SETUP_AT, 1);
  for (const place of [page.locator('.gk-panel .gk-map canvas'), page.locator('.gk-panel details:not([hidden]) summary').first()]) {
    // The lab focuses its notebook when the cell has ended: the view keeps the focus that comes after.
    await expect(async () => {
      await place.focus();
      await page.waitForTimeout(SETTLE_MS);
      await expect(place).toBeFocused({ timeout: 1 });
    }).toPass();
    for (const key of ['ArrowUp', 'b', 'x']) await page.keyboard.press(key);
    await expect(place).toBeFocused();
  }
  await expect(lab.cells.all()).toHaveCount(2);
  expect(await Promise.all([0, 1].map((at) => lab.cells.source(at)))).toEqual([SETUP, VIEW]);
});

test("a pane marks the cells of its own notebook, not those of another with the same numbers", async () => {
  const { page } = lab.notebook;
  await lab.open('theirs.ipynb', 0, 1);
  await page.evaluate(() => window.jupyterapp.commands.execute('docmanager:open', { path: 'mine.ipynb' }));
  await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.ready);
  for (const at of [0, 1]) await lab.cells.run(at);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'cells' }));
  await expectLive(dashboard('GPU cells'));
  await expect(lab.cells.at(1).locator('.jp-InputPrompt')).toHaveText('[2]:');
  await expect(lab.cells.at(1).locator('.gk-badge')).toContainText('1 launch');
  await expect(page.locator('.gk-badge')).toHaveCount(1);
});

test('after a restart a badge is on the cell that ran, not on one that has kept its number', async () => {
  const { page } = lab.notebook;
  await lab.open('restarted.ipynb', 0, 1);
  await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'cells' }));
  await expect(lab.cells.at(1).locator('.gk-badge')).toContainText('1 launch');
  await lab.notebook.toFront();
  await lab.cells.restartKernel();
  await expect(page.locator('.gk-badge')).toHaveCount(0);
  for (let runs = 0; runs < 2; runs++) await lab.cells.run(0);
  await expect(lab.cells.at(0).locator('.gk-badge')).toContainText('launch');
  for (const at of [0, 1]) await expect(lab.cells.at(at).locator('.jp-InputPrompt')).toHaveText('[2]:');
  await expect(page.locator('.gk-badge')).toHaveCount(1);
});

test('where no page listens Python is told so', async () => {
  await lab.open('unheard.ipynb', 0);
  await expect(lab.cells.at(0).locator('.jp-OutputArea-output').last()).toContainText('no page listens');
  await expect(panes()).toHaveCount(0);
});
