// A cell with a dashboard, run again and again: one view is served, by one thread, and those before are gone in kernel and page.

import { expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const RUNS = 100;
const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';
const VIEW = 'display(gp.dashboard.memory())';
/** Sampler threads, dashboards that a page looks at, dashboards that there are, open models of all widgets. */
const COUNT = `
import gc, threading
from ipywidgets.widgets.widget import _instances
from pygpukit.jupyter.widgets import MemoryWidget
gc.collect()
_made = [one for one in gc.get_objects() if MemoryWidget in type(one).__mro__]
print(sum(one.name == "pygpukit-telemetry" for one in threading.enumerate()), sum(one.visible for one in _made), len(_made), len(_instances))
del _made
`;
const [FIRST_AT, SECOND_AT, THIRD_AT] = [0, 1, 2];
/** A view's model and that of its layout. */
const MODELS = 2;

const lab = useLab({ notebooks: { 'reruns.ipynb': [SETUP, VIEW], 'held.ipynb': [`${SETUP}\nview = gp.dashboard.memory()`, 'display(view)', 'pass'], 'ended.ipynb': [SETUP, 'gp.dashboard.scheduler()'] } });

test(`after ${RUNS} runs of its cell one dashboard is there and served, by one thread, in the kernel and in the page`, async () => {
  const { page } = lab.notebook;
  await lab.open('reruns.ipynb', FIRST_AT);
  await lab.notebook.noteComms();
  await lab.notebook.whileAsked(async () => {
    for (let run = 0; run < RUNS; run++) await lab.cells.run(SECOND_AT);
  });
  await expect(page.locator('.gk-panel')).toHaveCount(1);
  await expect(page.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
  await expect.poll(() => lab.notebook.execute(COUNT)).toBe(`1 1 1 ${MODELS}\n`);
  await expect.poll(() => lab.notebook.comms()).toEqual({ opened: MODELS * RUNS, open: MODELS });
  await lab.notebook.execute('import ipywidgets; ipywidgets.Widget.close_all()');
  await expect.poll(() => lab.notebook.execute(COUNT)).toBe('0 0 0 0\n');
  await expect(page.locator('.gk-panel')).toHaveCount(0);
});

test('a view that its cell has let go of is live again where it is shown', async () => {
  const panel = lab.notebook.page.locator('.gk-panel');
  await lab.open('held.ipynb', FIRST_AT, SECOND_AT);
  await expect(panel).toHaveAttribute('data-state', 'live');
  await lab.cells.write(SECOND_AT, 'pass');
  await lab.cells.run(SECOND_AT);
  await expect(panel).toHaveCount(0);
  await expect.poll(() => lab.notebook.execute('print(view.comm)')).toBe('None\n');
  await lab.cells.write(THIRD_AT, 'display(view)');
  await lab.cells.run(THIRD_AT);
  await expect(panel).toHaveAttribute('data-state', 'live');
  const before = Number(await panel.getAttribute('data-used'));
  await lab.notebook.execute('held = gp.zeros(1 << 20)');
  await expect.poll(async () => Number(await panel.getAttribute('data-used'))).toBeGreaterThan(before);
});

test('a view whose kernel was restarted says so, and offers nothing that would act', async () => {
  const panel = lab.notebook.page.locator('.gk-panel');
  await lab.open('ended.ipynb', FIRST_AT, SECOND_AT);
  await expect(panel).toHaveAttribute('data-state', 'live');
  await expect(panel.getByRole('button', { name: 'Pause', exact: true })).toBeVisible();
  await lab.cells.restartKernel();
  await expect(panel).toHaveAttribute('data-state', 'ended');
  await expect(panel).toContainText('Run the cell that made it again');
  await expect(panel.getByRole('button', { name: 'Pause', exact: true })).toBeHidden();
  await lab.cells.run(FIRST_AT);
  await lab.cells.run(SECOND_AT);
  await expect(panel).toHaveCount(1);
  await expect(panel).toHaveAttribute('data-state', 'live');
});
