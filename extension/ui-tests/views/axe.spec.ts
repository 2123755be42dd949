// axe-core on what is for sound, on every dashboard and a profile's timeline with their tables open, and on a chat with all that it can show, light, dark, and in a lab whose theme is not the system's: no serious and no critical violation.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Page, expect, test } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';
import { mount, playTrace, sendFrames, sendMessage } from '../support/plain-page.ts';
import { giveSound } from '../support/stub-sound.ts';
import { scenario } from '../support/scenario.ts';
import { openTimeline } from '../support/timeline-page.ts';
import { CONTROLS, TRACE } from '../support/views.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

declare const axe: { run(where: string, options: RunOptions): Promise<AxeResults> };

/** What has to be there before it is looked at; else a row of a table. */
const SEEN: Readonly<Record<string, string>> = { player: '.gk-note', recorder: '.gk-play', spectrogram: '.gk-canvas', talk: '.gk-talk-turn', chat: '.gk-code' };

/** The system's preference, and the lab's variables that go before it, as its dark theme has them. */
const THEMES = {
  light: { colorScheme: 'light', lab: {}, dark: false },
  dark: { colorScheme: 'dark', lab: {}, dark: true },
  'JupyterLab Dark': { colorScheme: 'light', lab: { '--jp-layout-color1': '#212121', '--jp-ui-font-color1': 'rgba(255, 255, 255, 0.87)' }, dark: true },
} as const;

/** Two turns, and something to be told. */
const TALK = {
  type: 'state',
  rate: 16000,
  busy: true,
  note: 'Nothing was understood.',
  turns: [{ heard: 'What is the capital of France?', answer: 'Paris.', interrupted: true }, { heard: 'Why?', answer: '', interrupted: false }],
};

/** A conversation with thinking, code, a list, branches, a failure, tokens shown and a question that is being edited. */
async function showChat(page: Page): Promise<void> {
  const figures = { rate: 20, first: 0.5, tokens: 3, used: 40, context: 512, bytes: 2 ** 20 };
  const texts = ['Some **bold** text, `code` and a [link](https://example.org).\n\n', '```cuda\n#include <cuda.h>\n__global__ void f(float* x) {\n  // one\n  x[threadIdx.x] = 1.5f; printf("a");\n}\n```\n', '```python\n@gp.jit\ndef f(x):\n    return x + 1  # "a"\n```\n', '- one\n- two\n'];
  const rows = texts.map((text, i) => [i, text, i === 0 ? 'Let me see.' : '', -0.1 - i, [[text, -0.1 - i], ['else', -2]]]);
  const messages = [
    { role: 'user', number: 0, places: [0, 4], text: 'a question' },
    { role: 'assistant', number: 1, places: [1], rows, reason: 'length', ended: 'Cut at its greatest length.', error: '', stage: '', note: 'The 2 oldest messages no longer fit.', figures },
    { role: 'user', number: 2, places: [2], text: 'another' },
    { role: 'assistant', number: 5, places: [5], rows, reason: 'failed', ended: '', error: 'ValueError: no', stage: '', note: '', figures },
    { role: 'user', number: 6, places: [6], text: 'and one more' },
    { role: 'assistant', number: 3, places: [3], rows: [], reason: null, ended: '', error: '', stage: 'Reading 34 tokens', note: '', figures },
  ];
  const settings = { max_new_tokens: 64, temperature: null, top_p: 0.9 };
  await sendMessage(page, { type: 'state', model: 'stub', system: 'Be brief.', busy: false, settings, messages, chats: ['a question', 'another'], chat: 0 });
  await sendMessage(page, { type: 'refused', text: 'an answer is still coming', question: '' });
  await page.getByRole('button', { name: 'Tokens' }).nth(1).click();
  await page.getByRole('button', { name: 'Edit' }).last().click();
  await page.locator('summary', { hasText: 'Settings' }).click();
}

async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate(() => axe.run('.gk-panel', { resultTypes: ['violations', 'passes'] }));
  expect(passes.map(({ id }) => id)).toContain('color-contrast');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

for (const [theme, { colorScheme, lab, dark }] of Object.entries(THEMES)) {
  for (const name of ['memory', 'scheduler', 'device', 'cells', 'player', 'recorder', 'spectrogram', 'talk', 'chat', 'timeline'] as const) {
    test(`${name}, ${theme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      if (name === 'timeline') await openTimeline(page);
      else await mount(page, name, { controls: CONTROLS });
      await page.evaluate((variables) => Object.entries(variables).forEach(([key, value]) => document.documentElement.style.setProperty(key, value)), lab);
      if (name === 'chat') await showChat(page);
      else if (name === 'memory' || name === 'scheduler') await sendFrames(page, scenario(480));
      else if (name === 'player') await giveSound(page, { rate: 22050, frames: 44100, note: 'The peak is 2.' });
      else if (name === 'recorder') await sendMessage(page, { type: 'state', rate: 16000, kept: 8000 });
      else if (name === 'spectrogram') await sendMessage(page, { type: 'state', rate: 16000, hop: 256, rows: 8, columns: 32 });
      else if (name === 'talk') await sendMessage(page, TALK);
      else if (name === 'timeline') await page.locator('.gk-timeline canvas').click({ position: { x: 20, y: 30 } });
      else await playTrace(page, TRACE);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
      await expect(page.locator(SEEN[name] ?? '.gk-table tbody tr').first()).toBeVisible();
      await expect.poll(() => page.locator('.gk-panel').evaluate((node) => node.classList.contains('gk-dark'))).toBe(dark);
      expect(await seriousFaults(page)).toEqual([]);
    });
  }
}
