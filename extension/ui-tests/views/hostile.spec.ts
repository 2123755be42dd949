// Texts that would like to be markup, in every place of every view that shows one: none is ever anything but text.

import { type Page, expect, test } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { CORPUS } from '../support/hostile-texts.ts';
import { type ModuleName, mount, sendFrame, sendMessage } from '../support/plain-page.ts';

const MiB = 2 ** 20;
const BASE = 0x7f00_0000_0000;

/** Every text that the kernel can send to a view, hostile. */
async function tell(page: Page, text: string): Promise<void> {
  const records = [
    { kind: 64, a: 4, cell: 9 },
    { kind: 5, t: 1e9, a: BASE, b: 8 * MiB, c: 8 * MiB },
    { kind: 1, t: 1e9, a: BASE, b: MiB, c: 1, name: 5, tenant: 5, cell: 9, line: 3 },
    { kind: 3, t: 1.1e9, a: BASE, b: MiB, name: 5, tenant: 5 },
    { kind: 32, t: 1e9, a: 1, b: 4, name: 5 },
    { kind: 17, t: 2e9, a: 1e8, tenant: 5, stream: 4 },
  ];
  await sendMessage(page, { type: 'snapshot', seq: 0, device: text, blocks: [[BASE, MiB, 1, 5, 5, 9, 3, 1]], segments: [[BASE, 8 * MiB]], tasks: [] });
  await sendFrame(page, encodeFrame(1, 3e9, { gauges: [MiB], records, names: [[5, text]] }));
  const row = { number: 1, id: text, name: text, phase: 'Running', submittedNs: 1e9, startedNs: 1e9, finishedNs: 0, policy: text, detail: text, sharePpm: 1e5 };
  await sendMessage(page, { type: 'tasks', tNs: 3e9, rows: [row, { ...row, number: 2, name: `${text} 2`, phase: 'Queued' }] });
  await sendMessage(page, { type: 'partitions', rows: [{ id: text, sharePpm: 1e5, usedPpm: 0 }] });
  const cell = { count: 1, wallNs: 1, gpuNs: 1, launches: 1, untimed: 0, peak: 1, kept: 1, leaked: 0, complete: true };
  await sendMessage(page, { type: 'cells', rows: [{ ...cell, name: text }] });
  const field = { key: text, label: text, unit: text, note: text };
  const fields = [{ ...field, value: 1 }, { ...field, value: null }];
  await sendMessage(page, { type: 'device', tNs: 1e9, source: text, fields, processes: [[7, text, 9]] });
}

/** Kinds of element in the page, attributes that act, and whether a text did. */
function look(page: Page): Promise<{ kinds: string[]; acting: string[]; hit: boolean }> {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll('*')];
    const acting = all.flatMap((node) => node.getAttributeNames().filter((one) => /^(on.*|href|src|srcdoc)$/.test(one)));
    return { kinds: [...new Set(all.map((node) => node.localName))], acting, hit: 'hit' in window };
  });
}

for (const name of ['memory', 'scheduler', 'device', 'cells'] as const satisfies ModuleName[]) {
  test(`${name}: ${CORPUS.length} hostile texts in every place stay texts`, async ({ page }) => {
    const surprises: string[] = [];
    page.on('pageerror', (error) => surprises.push(error.message));
    page.on('dialog', (dialog) => (surprises.push(dialog.message()), void dialog.dismiss()));
    page.on('request', (request) => !/^(about|blob|data):/.test(request.url()) && surprises.push(request.url()));
    let usual: string[] = [];
    for (const text of ['a name', ...CORPUS]) {
      const actions = ['cancel', 'pause', 'pause_task', 'resume_task', 'quota', 'share', 'priority', 'trim'];
      await mount(page, name, { controls: { actions: [...actions, text] }, pause: { note: text }, trim: text });
      await tell(page, text);
      await expect.poll(() => page.locator('.gk-device').textContent()).toBe(text);
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
      for (const press of ['Pause', 'Release cached memory']) {
        const button = page.getByRole('button', { name: press, exact: true });
        if (!(await button.isVisible())) continue;
        await button.click();
        await expect(page.locator('.gk-control-status')).toContainText(text.trim());
      }
      const canvas = page.locator('.gk-gantt canvas, .gk-map canvas');
      if ((await canvas.count()) > 0) {
        await canvas.focus();
        for (const key of ['ArrowDown', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
      }
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const { kinds, acting, hit } = await look(page);
      if (usual.length === 0) usual = kinds;
      expect({ text, new: kinds.filter((kind) => !usual.includes(kind)), acting, hit }).toEqual({ text, new: [], acting: [], hit: false });
    }
    expect(usual.length).toBeGreaterThan(8);
    expect(surprises).toEqual([]);
  });
}
