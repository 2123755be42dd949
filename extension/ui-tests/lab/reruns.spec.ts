// A cell with a dashboard, run again and again: one view is served, by one thread, and what is closed is gone.

import { expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const RUNS = 100;
const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';
const VIEW = 'display(gp.dashboard.memory())';
/** Sampler threads, dashboards that a page looks at, dashboards that there are. */
const COUNT = `
import gc, threading
from pygpukit.jupyter.widgets import MemoryWidget
gc.collect()
_made = [one for one in gc.get_objects() if MemoryWidget in type(one).__mro__]
print(sum(one.name == "pygpukit-telemetry" for one in threading.enumerate()), sum(one.visible for one in _made), len(_made))
del _made
`;
const [SETUP_AT, VIEW_AT] = [0, 1];

const lab = useLab({ notebooks: { 'reruns.ipynb': [SETUP, VIEW] } });

test(`after ${RUNS} runs of its cell one dashboard is served, by one thread, and closed ones are gone`, async () => {
  const { page } = lab.notebook;
  await lab.notebook.open(lab.server.notebookUrl('reruns.ipynb'));
  await lab.cells.run(SETUP_AT);
  for (let run = 0; run < RUNS; run++) await lab.cells.run(VIEW_AT);
  await expect(page.locator('.gk-panel')).toHaveCount(1);
  await expect(page.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
  await expect.poll(() => lab.notebook.execute(COUNT)).toBe(`1 1 ${RUNS}\n`);
  await lab.notebook.execute('import ipywidgets; ipywidgets.Widget.close_all()');
  await expect.poll(() => lab.notebook.execute(COUNT)).toBe('0 0 0\n');
});
