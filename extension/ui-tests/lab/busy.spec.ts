// The dashboards' notebook in JupyterLab: views live, badges on cells, and a control that acts while a cell is busy.

import { type Locator, expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

test.describe.configure({ mode: 'serial' });

const lab = useLab({});

test.beforeAll(async () => {
  await lab.open('06_dashboards.ipynb');
  await lab.notebook.runAll();
});

const panel = (title: string): Locator => lab.notebook.page.locator(`.gk-panel[aria-label="${title}"]`);

test('every view has data, the replayed ones too', async () => {
  for (const [title, count] of [['GPU memory', 2], ['GPU scheduler', 2], ['GPU device', 1], ['GPU cells', 1]] as const) {
    await expect(panel(title)).toHaveCount(count);
    for (const view of await panel(title).all()) {
      await view.scrollIntoViewIfNeeded();
      await expect(view).toHaveAttribute('data-state', /live|paused|replay|over/);
    }
  }
  await expect(panel('GPU device')).toContainText('it has no sensors');
  await expect(panel('GPU scheduler').first().getByRole('button', { name: 'Pause', exact: true })).toBeVisible();
  await expect(panel('GPU scheduler').last().getByRole('button', { name: 'Pause', exact: true })).toBeHidden(); // a replay
});

test('executed cells carry badges', async () => {
  await panel('GPU cells').scrollIntoViewIfNeeded();
  await expect(lab.notebook.page.locator('.gk-badge').filter({ hasText: 'launches' }).first()).toBeAttached();
});

test('a control acts while a cell is busy', async () => {
  test.skip(!(await lab.notebook.subshells()), 'this kernel has no subshells');
  const view = panel('GPU scheduler').first();
  await view.scrollIntoViewIfNeeded();
  await lab.notebook.keepBusy();
  await view.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(view.locator('.gk-control-status')).toContainText('paused');
  expect(await lab.notebook.busy()).toBe(true);
  await view.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(view.locator('.gk-control-status')).toHaveText('resumed');
  expect(await lab.notebook.busy()).toBe(true);
  const kernel = lab.notebook.page.locator('#jp-main-statusbar').getByText(/\(ipykernel\) \|/);
  for (let looks = 0; looks < 5; looks++, await lab.notebook.page.waitForTimeout(100)) expect(await kernel.textContent()).toContain('| Busy');
  expect(await lab.notebook.finish()).toBe('');
  await expect(kernel).toContainText('| Idle');
});

test('a task is paused in its row while a cell is busy, and goes on', async () => {
  test.skip(!(await lab.notebook.subshells()), 'this kernel has no subshells');
  const view = panel('GPU scheduler').first();
  await view.scrollIntoViewIfNeeded();
  await lab.notebook.execute('import threading; gate = threading.Event(); first = scheduler.submit(gate.wait)');
  await lab.notebook.execute('held = scheduler.submit(lambda: gp.ones(4).to_numpy().sum(), name="held", depends_on=first)');
  await lab.notebook.keepBusy();
  const row = view.getByRole('button', { name: /^(Pause|Resume) held$/ });
  await row.click();
  await expect(view.locator('.gk-control-status')).toHaveText('held is paused');
  await expect(row).toHaveAccessibleName('Resume held');
  await expect(view.locator('.gk-lane-states li').last()).toHaveText('Queued: paused');
  expect(await lab.notebook.busy()).toBe(true);
  expect(await lab.notebook.finish()).toBe('');
  await lab.notebook.execute('gate.set(); first.result(60)');
  expect(await lab.notebook.execute('print(held.phase, held.reason)')).toBe('Queued WaitingForResume\n');
  await row.click();
  await expect(view.locator('.gk-control-status')).toHaveText('held goes on');
  expect(await lab.notebook.execute('print(held.result(60))')).toBe('4.0\n');
});

test('without subshells a control says that it waits, and acts when the cell ends', async () => {
  test.skip(await lab.notebook.subshells(), 'this kernel has subshells: a control acts at once');
  const view = panel('GPU scheduler').first();
  const status = view.locator('.gk-control-status');
  await view.scrollIntoViewIfNeeded();
  await lab.notebook.keepBusy();
  await view.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(status).toHaveText('Pause: queued until the running cell ends');
  expect(await lab.notebook.busy()).toBe(true);
  expect(await lab.notebook.finish()).toBe('');
  await expect(status).toContainText('paused');
  await view.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(status).toHaveText('resumed');
});
