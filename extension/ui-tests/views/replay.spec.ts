// Recorded traces: what was recorded is drawn with no kernel, and the same in two pages.

import { expect, test } from '@playwright/test';
import { type ModuleName, mount, playTrace, sendMessage } from '../support/plain-page.ts';
import { TRACE, failOnPageErrors, panel } from '../support/views.ts';

failOnPageErrors();

for (const name of ['memory', 'scheduler', 'device', 'cells'] as const satisfies ModuleName[]) {
  test(`replay: the recorded trace fills the ${name} view, with no kernel and no request`, async ({ page }) => {
    const requests: string[] = [];
    page.on('request', (request) => /^https?:/.test(request.url()) && requests.push(request.url()));
    await mount(page, name);
    expect(await playTrace(page, TRACE)).toBeGreaterThan(20);
    await expect(panel(page)).toHaveAttribute('data-state', /live|paused/); // two seconds after the last frame
    const expected = {
      memory: () => expect(page.locator('.gk-legend .gk-label').first()).toHaveText('weights'),
      scheduler: () => expect(panel(page)).toHaveAttribute('data-tasks', '7'),
      device: () => expect(page.locator('.gk-chosen').first()).toContainText('simulated'),
      cells: () => expect(panel(page)).toHaveAttribute('data-cells', '3'),
    };
    await expected[name]();
    expect(requests).toEqual([]);
  });
}

test('two views that got the same messages show the same record', async ({ page, context }) => {
  const other = await context.newPage();
  for (const each of [page, other]) {
    await mount(each, 'memory');
    await playTrace(each, TRACE);
    await expect(panel(each)).toHaveAttribute('data-state', /live|paused/);
  }
  expect(await panel(page).getAttribute('data-seq')).toBe(await panel(other).getAttribute('data-seq'));
});

test('replay: at its end it says so and stays so, and its map is there when it is looked at again', async ({ page }) => {
  await mount(page, 'memory');
  const play = async (): Promise<void> => {
    await sendMessage(page, { type: 'replay', state: 'begins' });
    await playTrace(page, TRACE);
    await sendMessage(page, { type: 'replay', state: 'ended' });
  };
  for (let times = 0; times < 2; times++) {
    await play();
    await expect(panel(page)).toHaveAttribute('data-state', 'over');
    await expect(page.locator('.gk-light')).toHaveText('Replay ended');
    const live = Number(/^(\d+) live/.exec((await page.locator('.gk-figure').nth(2).locator('.gk-note').textContent()) ?? '')?.[1]);
    expect(live).toBeGreaterThan(0);
    await expect(panel(page)).toHaveAttribute('data-blocks', String(live));
  }
  await page.waitForTimeout(2500); // longer than a live view may be silent
  await expect(panel(page)).toHaveAttribute('data-state', 'over');
});
