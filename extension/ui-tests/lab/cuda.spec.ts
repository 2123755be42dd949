// The extension in JupyterLab, behind a prefix as a hub gives it: what it does for `%%cuda` cells, one behaviour a test.

import { type Locator, expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const PREFIX = '/user/ada/';
const CUDA = 'text/x-cuda';
const PYTHON = 'text/x-ipython';
const AXPY = `%%cuda -i x,y,a=2.0,n=64 -o z
// adds a scaled vector
__global__ void axpy(const float* x, const float* y, float* z, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}`;
const TWO = `\n\n%%cuda -D FACTOR=2
__global__ void twice(float* x) { x[threadIdx.x] *= FACTOR; }
__global__ void thrice(float* x) { x[threadIdx.x] *= 3; }`;
const CHECKED = `%%cuda --check
__global__ void over(float* x, int n) {
    x[n] = 1.0f;
}`;
const SETUP = '%load_ext pygpukit\nimport time\nimport pygpukit as gp\nx, y, z = gp.ones(64), gp.ones(64), gp.zeros(64)';
const [SETUP_AT, AXPY_AT, TWO_AT, PYTHON_AT, CHECKED_AT, LAUNCH_AT, COMMENT_AT] = [0, 1, 2, 3, 4, 5, 6];
const SOURCES = [SETUP, AXPY, TWO, 'a = 7 // 2  # Python', CHECKED, 'over[1, 1](x, 64)\nx.to_numpy()', '# about\n%%cuda'];

const lab = useLab({
  prefix: PREFIX,
  notebooks: {
    'cuda.ipynb': SOURCES,
    'other.ipynb': [SETUP, TWO],
    'plain.ipynb': ['%%cuda\nnothing is loaded', 'print(1)'],
  },
});

test.beforeEach(async () => {
  lab.server.putNotebook('cuda.ipynb', SOURCES);
  await lab.open('cuda.ipynb');
  expect(lab.notebook.page.url()).toContain(PREFIX);
});

const errors = (index: number): Locator => lab.cells.at(index).locator('.cm-lintRange-error');
const pane = (): Locator => lab.notebook.page.locator('.gk-asm');
const assembly = (): Locator => lab.notebook.page.locator('.gk-asm-line');

async function expectMimes(): Promise<void> {
  for (const at of [AXPY_AT, TWO_AT, CHECKED_AT]) await expect.poll(() => lab.cells.mime(at)).toBe(CUDA);
  for (const at of [SETUP_AT, PYTHON_AT, LAUNCH_AT, COMMENT_AT]) await expect.poll(() => lab.cells.mime(at)).toBe(PYTHON);
}

/** A language is loaded when it is first needed: the colours come after it. */
async function expectColour(index: number, text: string, name: string): Promise<void> {
  const colour = await lab.cells.themeColour(`--jp-mirror-editor-${name}-color`);
  await expect.poll(() => lab.cells.colour(index, text)).toBe(colour);
}

/** The pointer is put there again until this is said: what moves meanwhile takes the target away from below it. */
async function expectSaid(target: Locator, where: Locator, words: string): Promise<void> {
  await expect(async () => {
    await lab.notebook.page.mouse.move(0, 0);
    await target.hover();
    await expect(where).toContainText(words, { timeout: 2_000 });
  }).toPass({ timeout: 60_000 });
}

test('CUDA cells are coloured as CUDA, also below blank lines and with options, the others stay Python', async () => {
  await expectMimes();
  await expectColour(AXPY_AT, '// adds a scaled vector', 'comment');
  await expectColour(AXPY_AT, '__global__', 'keyword');
  await expectColour(AXPY_AT, 'blockIdx', 'builtin');
  await expectColour(PYTHON_AT, '# Python', 'comment');
});

test('the mode survives run, kernel restart, change of cell type and back, undo, and reload', async () => {
  const { page } = lab.notebook;
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(AXPY_AT);
  await expectMimes();
  await page.evaluate(() => {
    const { sessionContext } = window.jupyterapp.shell.currentWidget as unknown as { sessionContext: { restartKernel(): Promise<void> } };
    return sessionContext.restartKernel();
  });
  await expectMimes();
  await lab.cells.activate(AXPY_AT);
  await page.evaluate(() => window.jupyterapp.commands.execute('notebook:change-cell-to-markdown'));
  await page.evaluate(() => window.jupyterapp.commands.execute('notebook:change-cell-to-code'));
  await expectMimes();
  await page.evaluate(() => window.jupyterapp.commands.execute('notebook:cut-cell'));
  await page.evaluate(() => window.jupyterapp.commands.execute('notebook:undo-cell-action'));
  await expectMimes();
  await lab.notebook.save();
  await lab.open('cuda.ipynb');
  await expectMimes();
  await expectColour(AXPY_AT, '__global__', 'keyword');
});

test('each cell of a long notebook is drawn in one language, once, also far below what is shown', async () => {
  const { page } = lab.notebook;
  const count = 120;
  lab.server.putNotebook('long.ipynb', Array.from({ length: count }, (_, at) => (at % 2 ? `x = ${at}  # Python` : TWO)), true);
  const drawn = await page.evaluate(async (path) => {
    const languages = new Map<Element, string[]>(); // of each editor, as they come
    const { setAttribute } = Element.prototype;
    Element.prototype.setAttribute = function (name, value) {
      if (name === 'data-language') languages.set(this, [...(languages.get(this) ?? []), value]);
      setAttribute.call(this, name, value);
    };
    try {
      const panel = (await window.jupyterapp.commands.execute('docmanager:open', { path })) as typeof window.jupyterapp.shell.currentWidget;
      await panel.sessionContext.ready;
      await panel.sessionContext.session.kernel.info;
      const all = () => panel.content.widgets.map(({ node }) => languages.get(node.querySelector('.cm-content') ?? node)?.join());
      const after = (ms: number) => new Promise((done) => setTimeout(done, ms));
      for (let looks = 0; looks < 600 && all().includes(undefined); looks++) await after(100);
      await after(1000); // what would be drawn anew late
      return all();
    } finally {
      Element.prototype.setAttribute = setAttribute;
    }
  }, 'long.ipynb');
  expect(drawn).toEqual(Array.from({ length: count }, (_, at) => (at % 2 ? 'python' : 'cuda')));
  await lab.cells.at(count - 2).scrollIntoViewIfNeeded();
  await expectColour(count - 2, '__global__', 'keyword');
});

test('a cell that stops being CUDA is Python again, and one that becomes CUDA is CUDA', async () => {
  await lab.cells.write(AXPY_AT, 'print(1)  # no kernel');
  await expect.poll(() => lab.cells.mime(AXPY_AT)).toBe(PYTHON);
  await lab.cells.write(PYTHON_AT, TWO);
  await expect.poll(() => lab.cells.mime(PYTHON_AT)).toBe(CUDA);
});

test('comments are //, and a brace indents', async () => {
  await lab.cells.write(PYTHON_AT, '%%cuda\nvoid f() {');
  await expect.poll(() => lab.cells.mime(PYTHON_AT)).toBe(CUDA);
  await lab.cells.at(PYTHON_AT).locator('.cm-line').last().click();
  await lab.notebook.page.keyboard.press('End');
  await lab.notebook.page.keyboard.press('Enter');
  await lab.notebook.page.keyboard.type('a();');
  await lab.notebook.page.keyboard.press('Control+/');
  await expect.poll(() => lab.cells.source(PYTHON_AT)).toContain('%%cuda\nvoid f() {\n    // a();');
});

test('a compile error is underlined at its token, until its line is edited or the cell is clean', async () => {
  const bad = AXPY.replace('y[i];', 'missing[i];');
  await lab.cells.run(SETUP_AT);
  await lab.cells.write(AXPY_AT, bad);
  await lab.cells.run(AXPY_AT);
  await expect(errors(AXPY_AT)).toHaveCount(1);
  await expect(errors(AXPY_AT)).toHaveText('missing');
  await expectSaid(errors(AXPY_AT), lab.notebook.page.locator('.cm-tooltip-lint'), 'missing');

  const line = (number: number): Locator => lab.cells.at(AXPY_AT).locator('.cm-line').nth(number - 1);
  await line(2).click();
  await lab.notebook.page.keyboard.type('more');
  await expect(errors(AXPY_AT)).toHaveText('missing');
  await line(5).click();
  await lab.notebook.page.keyboard.type(' ');
  await expect(errors(AXPY_AT)).toHaveCount(0);

  await lab.cells.write(AXPY_AT, bad);
  await lab.cells.run(AXPY_AT);
  await expect(errors(AXPY_AT)).toHaveText('missing');
  await lab.cells.write(AXPY_AT, AXPY);
  await lab.cells.run(AXPY_AT);
  await expect(errors(AXPY_AT)).toHaveCount(0);
});

test('a cell that is written in until it is no CUDA cell has no underline left', async () => {
  await lab.cells.run(SETUP_AT);
  await lab.cells.write(AXPY_AT, AXPY.replace('y[i];', 'missing[i];'));
  await lab.cells.run(AXPY_AT);
  await expect(errors(AXPY_AT)).toHaveText('missing');
  await lab.cells.at(AXPY_AT).locator('.cm-line').first().click();
  await lab.notebook.page.keyboard.press('Home');
  await lab.notebook.page.keyboard.type('no');
  await expect.poll(() => lab.cells.mime(AXPY_AT)).toBe(PYTHON);
  await expect(errors(AXPY_AT)).toHaveCount(0);
});

test('findings of the checker are underlined in the cell of the kernel, also after a reload', async () => {
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(CHECKED_AT);
  await lab.cells.run(LAUNCH_AT);
  await expect(errors(CHECKED_AT)).toHaveText('x');
  await expect(errors(LAUNCH_AT)).toHaveCount(0);
  await lab.notebook.save();
  await lab.open('cuda.ipynb');
  await expect(errors(CHECKED_AT)).toHaveText('x');
});

test('completion offers the words of CUDA with their meaning, hover explains them', async () => {
  const { page } = lab.notebook;
  await lab.cells.run(SETUP_AT);
  await lab.cells.write(PYTHON_AT, '%%cuda --bench\n__ballot');
  await lab.cells.at(PYTHON_AT).locator('.cm-line').last().click();
  await page.keyboard.press('End');
  await page.keyboard.press('Tab');
  await expect(page.locator('.jp-Completer-item')).toContainText('__ballot_sync');
  await page.keyboard.press('Enter');
  await expect.poll(() => lab.cells.source(PYTHON_AT)).toBe('%%cuda --bench\n__ballot_sync');
  await page.keyboard.press('Escape');
  const hover = page.locator('.gk-hover');
  await expectSaid(lab.cells.at(PYTHON_AT).getByText('__ballot_sync'), hover, 'unsigned __ballot_sync(unsigned mask, int predicate)');
  await page.mouse.move(0, 0);
  await expect(hover).toHaveCount(0);
  // The options are the kernel's own words, known once it has answered.
  await lab.cells.run(TWO_AT);
  await expectSaid(lab.cells.at(PYTHON_AT).getByText('--bench'), hover, '--bench');
});

test('the code of a kernel is beside its cell: lines lead to each other both ways', async () => {
  const { page } = lab.notebook;
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(AXPY_AT);
  await page.locator('[data-jp-item-name="pygpukit-assembly"] jp-button, [data-jp-item-name="pygpukit-assembly"] button').first().click();
  await expect(pane().locator('select')).toHaveValue('axpy');
  await expect(assembly().first().or(page.locator('.gk-asm-said'))).toBeVisible();
  await expect(pane().locator('.gk-asm-note')).toContainText('simulated device');
  if (await assembly().count()) {
    await assembly().filter({ hasText: 'fma' }).first().click();
    await expect(lab.cells.at(AXPY_AT).locator('.gk-source-line')).toContainText('z[i] = a * x[i] + y[i]');
    await expect.poll(() => lab.cells.cursorLine(AXPY_AT)).toBe(5);
    await page.keyboard.press('Home');
    await expect(assembly().first()).toHaveAttribute('aria-selected', 'true');
    await lab.cells.at(AXPY_AT).locator('.cm-line').nth(3).click();
    await expect(page.locator('.gk-asm-line.gk-mod-marked').first()).toContainText('4');
    await expect(pane().locator('dd').first()).toHaveText(/^\d+$/);
  } else {
    await expect(page.locator('.gk-asm-said')).toContainText('install');
    await expect(pane().locator('dd').first()).toHaveText('not known');
  }
  await expect(pane().locator('dd').last()).toHaveText('not measured');
  await lab.cells.run(TWO_AT);
  await lab.cells.activate(TWO_AT);
  await expect(pane().locator('option')).toHaveText(['twice', 'thrice']);
});

test('the status bar and the Running tab tell what the kernel holds, also while a cell is busy', async () => {
  const { page } = lab.notebook;
  const item = page.locator('.pygpukit-StatusItem');
  await lab.cells.run(SETUP_AT);
  await lab.cells.run(TWO_AT);
  await expect(item).toHaveText(/^GPU \d/);
  const before = await item.textContent();
  await lab.notebook.keepBusy('held = gp.zeros(1 << 22)');
  await expect(item).not.toHaveText(before ?? '');
  await expect(item).toContainText('MiB');
  expect(await lab.notebook.busy()).toBe(true);
  expect(await lab.notebook.finish()).toBe('');
  await page.evaluate(() => window.jupyterapp.commands.execute('running:show-panel'));
  await expect(page.locator('#jp-running-sessions')).toContainText(/cuda\.ipynb: [\d.]+ MiB/);
});

test('two notebooks at once have their own cells, diagnostics and status', async () => {
  const { page } = lab.notebook;
  await lab.cells.run(SETUP_AT);
  await lab.cells.write(AXPY_AT, '%%cuda\nbroken');
  await lab.cells.run(AXPY_AT);
  await expect(errors(AXPY_AT)).not.toHaveCount(0);
  await page.evaluate(() => window.jupyterapp.commands.execute('docmanager:open', { path: 'other.ipynb' }));
  await expect(lab.cells.at(1)).toContainText('twice');
  await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.ready);
  await expect.poll(() => lab.cells.mime(1)).toBe(CUDA);
  await expect(page.locator('.pygpukit-StatusItem')).toHaveText('GPU'); // of the other one's kernel, nothing
  await lab.cells.run(0);
  await lab.cells.run(1);
  await expect(page.locator('.pygpukit-StatusItem')).toHaveText(/^GPU \d/);
  await expect(errors(1)).toHaveCount(0);
});

test('a kernel without pygpukit is left in peace', async () => {
  const { page } = lab.notebook;
  await lab.open('plain.ipynb');
  await expect.poll(() => lab.cells.mime(0)).toBe(CUDA);
  await lab.cells.run(1);
  await lab.cells.run(0);
  await page.waitForTimeout(1_500);
  await expect(page.locator('.Toastify__toast')).toHaveCount(0);
  await expect(page.locator('.pygpukit-StatusItem')).toHaveText('GPU');
  await expect(lab.cells.at(1).locator('.jp-OutputArea-output')).toHaveText('1');
  await expect(lab.cells.at(0).locator('.jp-OutputArea-output')).toHaveCount(1);
});

test('every command has a label, a caption, an icon and a schema', async () => {
  const result = await lab.notebook.page.evaluate(async () => {
    const { commands } = window.jupyterapp as unknown as {
      commands: {
        listCommands(): string[];
        label(id: string): string;
        caption(id: string): string;
        icon(id: string): unknown;
        describedBy(id: string): Promise<{ args: unknown }>;
      };
    };
    const mine = commands.listCommands().filter((id) => id.startsWith('pygpukit:'));
    return Promise.all(
      mine.map(async (id) => [id, !!commands.label(id), !!commands.caption(id), !!commands.icon(id), !!(await commands.describedBy(id)).args]),
    );
  });
  expect(result.map(([id]) => id).sort()).toEqual(
    ['explain-cell', 'new-chat', 'new-workbench', 'open-assembly', 'open-view', 'open-workbench', 'show-status'].map((name) => `pygpukit:${name}`),
  );
  for (const [, ...has] of result) expect(has).toEqual([true, true, true, true]);
});
