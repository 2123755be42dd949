// What the tests of views in a plain page look at, play and never let pass.

import { join } from 'node:path';
import { type Locator, type Page, test } from '@playwright/test';
import { sendFrame } from './plain-page.ts';
import { scenario } from './scenario.ts';

/** A recorded trace with every kind of view in it. */
export const TRACE = join(import.meta.dirname, '../../../notebooks/data/dashboards.pgktrace');
/** What a kernel with every control answers when it is asked for them. */
export const CONTROLS = { actions: ['cancel', 'pause', 'resume', 'pause_task', 'resume_task', 'quota', 'share', 'priority', 'trim'] };

export const panel = (page: Page): Locator => page.locator('.gk-panel');

/** An error in the page fails the test that it comes in; for every test of a file. */
export function failOnPageErrors(): void {
  test.beforeEach(({ page }) => {
    page.on('pageerror', (error) => {
      throw error;
    });
  });
}

/** Sends so many ticks of the scenario. */
export async function play(page: Page, ticks: number): Promise<void> {
  for (const frame of scenario(ticks)) await sendFrame(page, frame);
}
