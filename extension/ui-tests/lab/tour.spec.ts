// The tour in JupyterLab: what the page shows is what the ring recorded, also while a cell runs.

import { type Locator, expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const TOUR = '00_tour.ipynb';
/** A busy main thread: launches, allocations and sleep. */
const BUSY = ['import pygpukit as _gp\n_held = []', '_held = (_held + [_gp.ones(1 << 16) + _gp.ones(1 << 16)])[-8:]'] as const;
/** Whether the kernel makes frames for any page. */
const SERVED = 'from pygpukit.telemetry import sampler as _sampler\nprint(_sampler._sampler.sending())';

interface Figures {
  readonly seq: number;
  readonly used: number;
  readonly reserved: number;
  readonly launches: number;
}

test.describe.configure({ mode: 'serial' });

const lab = useLab({});

test.beforeAll(async () => {
  await lab.open(TOUR);
  await lab.notebook.runAll();
});

const panel = (title: string): Locator => lab.notebook.page.locator(`.gk-panel[aria-label="${title}"]`).first();

/** All figures in one look, so that they are of one moment. */
function figures(view: Locator): Promise<Figures> {
  return view.evaluate((node) => {
    const read = (key: string): number => Number((node as HTMLElement).dataset[key]);
    return { seq: read('seq'), used: read('used'), reserved: read('reserved'), launches: read('launches') };
  });
}

/** Nobody looks at a dashboard any more, and the kernel knows. */
async function hide(): Promise<void> {
  await lab.notebook.page.evaluate(() => {
    for (const node of document.querySelectorAll<HTMLElement>('.gk-panel')) node.style.display = 'none';
  });
  await expect.poll(() => lab.notebook.execute(SERVED)).toBe('False\n');
}

/** The ring's GAUGE records at these sequence numbers, read by the kernel itself. */
async function recorded(seqs: readonly number[]): Promise<Figures[]> {
  const printed = await lab.notebook.execute(`
import json as _json, struct as _struct
from pygpukit import _core as _c
_out = []
for _seq in ${JSON.stringify(seqs)}:
    _bytes, _, _lost = _c.ring_read(_seq, 1)
    _got, _t, _kind, _d, _s, _te, _n, _a, _b, _lc = _struct.unpack_from("<QQHHIIIQQQ", _bytes)
    assert (_got, _kind, _lost) == (_seq, 80, 0), (_got, _kind, _lost)
    _out.append({"seq": _got, "used": _a, "reserved": _b, "launches": _lc})
print(_json.dumps(_out))
`);
  return JSON.parse(printed) as Figures[];
}

for (const title of ['GPU memory', 'GPU scheduler']) {
  test(`${title}: advances while a cell is busy, and shows what the ring recorded`, async () => {
    const view = panel(title);
    await view.scrollIntoViewIfNeeded();
    await expect(view).toHaveAttribute('data-state', 'live');
    // It may still look so from when it was in sight before: the kernel has heard of it, and goes on, once more comes.
    const { seq } = await figures(view);
    await expect.poll(async () => (await figures(view)).seq).toBeGreaterThan(seq);
    await lab.notebook.keepBusy(...BUSY);
    const looks: Figures[] = [];
    for (let i = 0; i < 6; i++) {
      const last = looks.at(-1)?.seq ?? 0;
      await expect.poll(async () => (await figures(view)).seq, { intervals: [20] }).toBeGreaterThan(last);
      looks.push(await figures(view));
    }
    const launches = async (): Promise<number> => looks[looks.push(await figures(view)) - 1]?.launches ?? 0;
    await expect.poll(launches).toBeGreaterThan(looks[0]?.launches ?? Infinity);
    expect(await lab.notebook.busy()).toBe(true);
    expect(await lab.notebook.finish()).toBe('');
    expect(looks).toEqual(await recorded(looks.map(({ seq }) => seq)));
  });
}

test('nothing is sent while nobody looks, and looking again works, with subshells while a cell is busy', async () => {
  const view = panel('GPU memory');
  await view.scrollIntoViewIfNeeded();
  await hide();
  const silence = async (): Promise<number> => {
    const before = lab.notebook.commMessages;
    await lab.notebook.page.waitForTimeout(2_000);
    return lab.notebook.commMessages - before;
  };
  await expect.poll(silence).toBe(0); // the status of the device may have changed a moment ago

  await lab.notebook.keepBusy(...BUSY);
  const { seq } = await figures(view);
  await lab.notebook.page.evaluate(() => {
    for (const node of document.querySelectorAll<HTMLElement>('.gk-panel')) node.style.display = '';
  });
  await view.scrollIntoViewIfNeeded();
  const subshells = await lab.notebook.subshells();
  if (!subshells) expect(await lab.notebook.finish()).toBe('');
  await expect.poll(async () => (await figures(view)).seq).toBeGreaterThan(seq);
  expect(await lab.notebook.busy()).toBe(subshells);
  expect(await lab.notebook.finish()).toBe('');
});

test('after a reload the view is back with its past', async () => {
  const view = panel('GPU memory');
  const samples = async (): Promise<number> => Number(await view.getAttribute('data-samples'));
  await view.scrollIntoViewIfNeeded();
  await expect.poll(samples).toBeGreaterThan(50);
  const before = await samples();
  await hide(); // or the kernel would send to the new page before it asks for the past
  // The first frame brings the ring's newest records: samples are not among them any more.
  expect(await lab.notebook.execute('from pygpukit import _core as _c\nfor _ in range(5000): _c.ring_push(18)')).toBe('');
  await lab.notebook.save();
  await lab.open(TOUR);
  await view.scrollIntoViewIfNeeded();
  await expect(view).toHaveAttribute('data-state', 'live');
  await expect.poll(samples).toBeGreaterThan(0);
  expect(await samples()).toBeGreaterThan(before / 2);
  const blocks = await lab.notebook.execute('print(len(_c.pool_blocks(0)), end="")');
  await expect(view).toHaveAttribute('data-blocks', blocks);
});

test('the command shows the GPU status while a cell is busy', async () => {
  test.skip(!(await lab.notebook.subshells()), 'this kernel has no subshells');
  const { page } = lab.notebook;
  const dialog = page.locator('.jp-Dialog');
  expect(await page.evaluate(() => window.jupyterapp.commands.label('pygpukit:show-status'))).toBe('Show GPU status');
  await lab.notebook.keepBusy(...BUSY);
  await lab.notebook.command('pygpukit:show-status');
  await expect(dialog).toContainText('GPU status');
  await expect(dialog).toContainText(/(sim|cuda):0 .*multiprocessors/);
  expect(await lab.notebook.busy()).toBe(true);
  await dialog.getByRole('button', { name: 'Close' }).click();
  expect(await lab.notebook.finish()).toBe('');
});

test('without subshells the command says that the kernel answers later, and shows the GPU status then', async () => {
  test.skip(await lab.notebook.subshells(), 'this kernel has subshells: it answers at once');
  const { page } = lab.notebook;
  await lab.notebook.keepBusy(...BUSY);
  await lab.notebook.command('pygpukit:show-status');
  await expect(page.locator('.Toastify__toast')).toContainText('it answers when the running cell ends');
  expect(await lab.notebook.finish()).toBe('');
  await lab.notebook.command('pygpukit:show-status');
  await expect(page.locator('.jp-Dialog')).toContainText('multiprocessors');
  await page.locator('.jp-Dialog').getByRole('button', { name: 'Close' }).click();
});

test('a kernel without the extension is told apart, with the remedy', async () => {
  await lab.notebook.execute("get_ipython().run_line_magic('unload_ext', 'pygpukit')");
  await lab.notebook.command('pygpukit:show-status');
  const notices = lab.notebook.page.locator('.Toastify__toast');
  await expect(notices.filter({ hasText: 'run "%load_ext pygpukit" in a cell first' })).toBeVisible();
});
