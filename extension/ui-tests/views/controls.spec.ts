// The controls of the views: where they are drawn, what a press asks for, and how its answer reads.

import { expect, test } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { mount, sendFrame, sendMessage } from '../support/plain-page.ts';
import { threeTasks } from '../support/three-tasks.ts';
import { CONTROLS, failOnPageErrors, panel } from '../support/views.ts';

const MiB = 2 ** 20;

failOnPageErrors();

test('controls: drawn where the kernel has the operation, and only there', async ({ page }) => {
  await mount(page, 'scheduler', { controls: { actions: ['pause'] } });
  await threeTasks(page);
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible(); // and none in the rows
  await expect(page.getByRole('button', { name: 'Resume' })).toBeHidden();
  await mount(page, 'scheduler', { controls: 'this is a replay: there is nothing to control' });
  await threeTasks(page);
  await expect(page.getByRole('group', { name: 'Scheduler controls' })).toBeHidden();
});

test('controls: a press is a request, its answer is text, a busy kernel reads queued', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, pause: { note: 'paused now' }, cancel: 'no task' });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(status).toHaveText('paused now');
  const cancel = page.getByRole('button', { name: 'Cancel the chosen task' });
  await expect(cancel).toBeDisabled();
  await page.locator('.gk-gantt canvas').click({ position: { x: 60, y: 16 } });
  await expect(page.locator('.gk-chosen')).toContainText('Chosen: train, Running');
  await cancel.click();
  await expect(status).toHaveText('Cancel the chosen task: no task');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'cancel', args: { task: 'id1' } });
  await page.getByRole('button', { name: 'Resume', exact: true }).click(); // never answered
  await expect(status).toHaveText('Resume: queued until the running cell ends');
  await expect(status).toHaveAttribute('data-state', 'queued');
});

test('controls: each task that has not ended is paused and resumed in its row, by keyboard alone', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, pause_task: { note: 'serve is paused' }, resume_task: { note: 'train goes on' } });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  const states = page.locator('.gk-lane-states li');
  const buttons = page.locator('.gk-row-button');
  await expect(states).toHaveText([/^Running/, 'Queued: waiting for memory', /^Paused/]);
  await expect(buttons.nth(1)).toHaveAccessibleName('Pause serve');
  await page.locator('.gk-gantt canvas').focus();
  for (const name of ['Pause train', 'Pause serve', 'Resume train']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveAccessibleName(name);
  }
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('train goes on');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press(' ');
  await expect(status).toHaveText('serve is paused');
  expect((await page.evaluate(() => window.requests)).slice(-2)).toMatchObject([
    { action: 'resume_task', args: { task: 'id3' } },
    { action: 'pause_task', args: { task: 'id2' } },
  ]);
  const row = { number: 2, id: 'id2', name: 'serve', phase: 'Queued', submittedNs: 1e9, startedNs: 0, finishedNs: 0 };
  await sendMessage(page, { type: 'tasks', tNs: 3.2e9, rows: [{ ...row, paused: true }] });
  await expect(states.nth(1)).toHaveText('Queued: paused');
  await expect(states.nth(1)).toHaveAttribute('data-paused', 'true');
  await expect(page.locator(':focus')).toHaveAccessibleName('Resume serve');
  // While the focus is in a row, tasks that come do not put another in its place.
  const records = Array.from({ length: 20 }, (_, n) => ({ kind: 32, t: 3.5e9, a: 10 + n, name: 1, b: 2 }));
  await sendFrame(page, encodeFrame(8, 4e9, { records }));
  await expect(panel(page)).toHaveAttribute('data-tasks', '23');
  await expect(page.locator(':focus')).toHaveAccessibleName('Resume serve');
  await page.locator('.gk-gantt canvas').focus();
  await expect(buttons.first()).toBeHidden(); // the newest rows, of which no facts are known yet
});

test('controls: priority and share of the chosen task, by keyboard alone', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, priority: { note: 'train has priority 5' }, share: 'bandwidth: 900000 ppm more, and 500000 ppm are free' });
  await threeTasks(page);
  const status = page.locator('.gk-control-status');
  const [priority, share] = [page.getByLabel('Set priority: such as 5'), page.getByLabel('Set share: such as 30 %')];
  for (const field of [priority, share]) await expect(field).toBeDisabled();
  await page.locator('.gk-gantt canvas').focus();
  for (const key of ['ArrowDown', 'Enter']) await page.keyboard.press(key);
  await expect(page.locator('.gk-chosen')).toContainText('train, Running');
  await expect(page.locator('.gk-chosen')).toContainText('promised 50 %, priority 2');
  await priority.focus();
  await page.keyboard.type('5');
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('train has priority 5');
  for (const name of ['Set priority', 'Set share: such as 30 %']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveAccessibleName(name);
  }
  await page.keyboard.type('140 %');
  await page.keyboard.press('Enter');
  await expect(status).toHaveText('Set share: bandwidth: 900000 ppm more, and 500000 ppm are free');
  await expect(status).toHaveAttribute('data-state', 'refused');
  const sent = (await page.evaluate(() => window.requests)).slice(-2);
  expect(sent).toMatchObject([
    { action: 'priority', args: { task: 'id1', priority: '5' } },
    { action: 'share', args: { task: 'id1', share: '140 %' } },
  ]);
});

test('controls: the share of a partition, where there is one', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS, share: { note: 'partition serving keeps 40 % of the device' } });
  await threeTasks(page);
  const of = page.getByLabel('Share of', { exact: true });
  await expect(of).toBeHidden();
  await expect(page.getByText('Partitions as a table')).toBeHidden();
  const rows = [{ id: 'serving', sharePpm: 300_000, usedPpm: 0 }, { id: 'training', sharePpm: 500_000, usedPpm: 250_000 }];
  await sendMessage(page, { type: 'partitions', rows: [...rows, { id: 3 }, null, { id: 'x', sharePpm: 'y', usedPpm: 0 }] });
  await of.selectOption('partition serving');
  await sendMessage(page, { type: 'partitions', rows: [...rows].reverse() });
  await expect(of.locator('option')).toHaveText(['chosen task', 'partition training', 'partition serving']);
  await expect(of).toHaveValue('partition serving');
  await page.getByLabel('Set share: such as 30 %').fill('40 %');
  await page.keyboard.press('Enter');
  await expect(page.locator('.gk-control-status')).toHaveText('partition serving keeps 40 % of the device');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'share', args: { partition: 'serving', share: '40 %' } });
  await page.getByText('Partitions as a table').click();
  const table = page.locator('details', { hasText: 'Partitions as a table' }).locator('tbody tr');
  await expect(table).toHaveText(['training50 %25 %', 'serving30 %no share']);
});

test('controls: what has ended cannot be chosen to act on', async ({ page }) => {
  await mount(page, 'scheduler', { controls: CONTROLS });
  await threeTasks(page);
  await page.locator('.gk-gantt canvas').click({ position: { x: 60, y: 16 } });
  await expect(page.getByLabel('Set share: such as 30 %')).toBeEnabled();
  await sendFrame(page, encodeFrame(8, 4e9, { records: [{ kind: 32, t: 3.9e9, a: 1, name: 1, b: 4 * 256 + 6 }] }));
  for (const name of ['Set priority: such as 5', 'Set share: such as 30 %']) await expect(page.getByLabel(name)).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Cancel the chosen task' })).toBeDisabled();
});

test('memory: a new limit is sent as it was written', async ({ page }) => {
  await mount(page, 'memory', { controls: CONTROLS, quota: { note: 'the limit is 2 GiB' } });
  await sendFrame(page, encodeFrame(1, 1e9, { gauges: [MiB] }));
  await page.getByLabel('Set limit: such as 2GB').fill('2GB');
  await page.keyboard.press('Enter');
  await expect(page.locator('.gk-control-status')).toHaveText('the limit is 2 GiB');
  expect((await page.evaluate(() => window.requests)).at(-1)).toMatchObject({ action: 'quota', args: { limit: '2GB' } });
});
