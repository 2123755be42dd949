// What the views have in common, in the built bundles in a plain page: words while they wait, figures, hostile text, themes, visibility.

import { type Page, expect, test } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { type ModuleName, mount, sendFrame, sendMessage } from '../support/plain-page.ts';
import { scenario } from '../support/scenario.ts';
import { failOnPageErrors, panel, play } from '../support/views.ts';

const MiB = 2 ** 20;
const BASE = 0x7f00_0000_0000;
const NAMES = ['memory', 'scheduler'] as const;
const HOLDING = { cache: 'smollm2', blocks: 5, shared: 2, bytes: 5 * MiB }; // of a KV cache: its table is hidden without one
const LOOKED_AT = { type: 'view', visible: true };
const NOT_LOOKED_AT = { type: 'view', visible: false };
const sent = (page: Page): Promise<unknown[]> => page.evaluate(() => window.sent);

failOnPageErrors();

/** The page's timers wait for page.clock from now on. */
async function stopClock(page: Page): Promise<void> {
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(1000);
}

for (const name of NAMES) {
  test(`${name}: a sentence until the first frame, then figures of one GAUGE record`, async ({ page }) => {
    await mount(page, name);
    await expect(panel(page)).toHaveAttribute('data-state', 'waiting');
    await expect(page.locator('.gk-message')).toContainText('Waiting for the kernel');
    const gauges = [3 * MiB, 4 * MiB, 8 * MiB, MiB, 0, 3 * MiB, 2, 1, 40, 2, 0, 0, 0, 0, 5, 6];
    await sendFrame(page, encodeFrame(17, 1e9, { gauges }));
    await expect(panel(page)).toHaveAttribute('data-state', /live|paused/); // two seconds after the last frame
    const expected = { seq: '17', used: `${3 * MiB}`, reserved: `${4 * MiB}`, limit: `${8 * MiB}`, launches: '42', running: '5', queued: '6', lost: '0' };
    for (const [key, value] of Object.entries(expected)) await expect(panel(page)).toHaveAttribute(`data-${key}`, value);
    await expect(page.locator('.gk-seq')).toHaveText('#17');
    const first = page.locator('.gk-figure').first();
    await expect(first).toContainText(name === 'memory' ? '3.00MiB' : '5');
  });

  test(`${name}: of many frames in one go only the newest is drawn`, async ({ page }) => {
    await mount(page, name);
    const seen = await page.evaluate(() => {
      const values: string[] = [];
      const root = document.querySelector<HTMLElement>('.gk-panel');
      new MutationObserver(() => values.push(root?.dataset['seq'] ?? '')).observe(root as Node, { attributeFilter: ['data-seq'] });
      Object.assign(window, { values });
      return values;
    });
    expect(seen).toEqual([]);
    const frames = [...scenario(60)].map((frame) => Buffer.from(frame.buffer).toString('base64'));
    await page.evaluate((all) => all.forEach((frame) => window.receive({ type: 'frame' }, frame)), frames);
    const last = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done((window as unknown as { values: string[] }).values)))));
    expect(last).toHaveLength(1);
  });

  test(`${name}: another version is refused with one sentence`, async ({ page }) => {
    await mount(page, name);
    await sendFrame(page, encodeFrame(1, 1, { version: 2 }));
    await expect(panel(page)).toHaveAttribute('data-state', 'fault');
    await expect(page.locator('.gk-message')).toContainText('telemetry version 2 and this page reads version 1');
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`${name}: all text has contrast 4.5 or more, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await mount(page, name);
      await play(page, 480);
      await sendMessage(page, { type: 'caches', rows: [{ ...HOLDING, holder: 'ann 3' }] });
      for (const summary of await page.locator('.gk-details summary').all()) await summary.click();
      await expect(page.locator('.gk-table tbody tr').first()).toBeVisible();
      expect(await panel(page).evaluate((node) => node.classList.contains('gk-dark'))).toBe(colorScheme === 'dark');
      const low = await page.evaluate(lowContrast);
      expect(low.checked).toBeGreaterThan(30);
      expect(low.texts).toEqual([]);
    });
  }

  test(`${name}: tells the kernel when it is looked at, and when not`, async ({ page }) => {
    await stopClock(page);
    await mount(page, name);
    await expect.poll(() => sent(page)).toEqual([LOOKED_AT]);
    await page.evaluate(() => {
      document.body.style.paddingTop = '4000px';
    });
    await expect.poll(() => sent(page)).toEqual([LOOKED_AT, NOT_LOOKED_AT]);
    await page.evaluate(() => window.scrollTo(0, 1e6));
    await expect.poll(() => sent(page)).toEqual([LOOKED_AT, NOT_LOOKED_AT, LOOKED_AT]);
    await page.evaluate(() => window.unmount());
    await expect.poll(() => sent(page)).toEqual([LOOKED_AT, NOT_LOOKED_AT, LOOKED_AT, NOT_LOOKED_AT]);
    await page.clock.fastForward('10:00');
    expect(await sent(page)).toHaveLength(4);
    await expect(panel(page)).toHaveCount(0);
  });

  test(`${name}: says again that it is looked at, ever more rarely, until something comes`, async ({ page }) => {
    await stopClock(page);
    await mount(page, name);
    await expect.poll(() => sent(page)).toEqual([LOOKED_AT]);
    for (const [seconds, times] of [[2.9, 1], [0.1, 2], [5.9, 2], [0.1, 3]] as const) {
      await page.clock.fastForward(seconds * 1000);
      expect(await sent(page)).toEqual(Array(times).fill(LOOKED_AT));
    }
    await sendFrame(page, encodeFrame(1, 1e9, {}));
    await page.clock.fastForward('10:00');
    expect(await sent(page)).toHaveLength(3);
  });

  test(`${name}: names from the kernel are text, never markup`, async ({ page }) => {
    await mount(page, name);
    const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>"'&\u202e`;
    const records = [
      { kind: 5, a: BASE, b: 8 * MiB, c: 8 * MiB },
      { kind: 1, a: BASE, b: MiB, c: 1, name: 5 },
      { kind: 32, a: 1, b: 2, name: 5 },
    ];
    await sendFrame(page, encodeFrame(1, 1e9, { gauges: [MiB], records, names: [[5, hostile]] }));
    await sendMessage(page, { type: 'snapshot', seq: 0, device: hostile, blocks: [[BASE, MiB, 1, 0, 5, 0, 0, 1]], segments: [[BASE, 8 * MiB]], tasks: [] });
    await sendMessage(page, { type: 'caches', rows: [{ ...HOLDING, holder: hostile }] });
    for (const summary of await page.locator('.gk-details summary').all()) await summary.click();
    const label = name === 'memory' ? '.gk-legend .gk-label' : '.gk-lane-names li';
    await expect(page.locator(label).first()).toHaveText(hostile);
    expect(await page.evaluate(() => [document.querySelectorAll('img, script').length, 'hit' in window])).toEqual([0, false]);
  });
}

for (const name of ['device', 'cells'] as const satisfies ModuleName[]) {
  test(`${name}: a sentence until something comes`, async ({ page }) => {
    await mount(page, name);
    await expect(panel(page)).toHaveAttribute('data-state', 'waiting');
    await expect(page.locator('.gk-message')).toContainText('Waiting for the kernel. If this stays, run the cell');
  });
}

/** Runs in the page: texts whose colour is too near to the panel's surface. */
function lowContrast(): { checked: number; texts: string[] } {
  const parse = (colour: string): number[] => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (rgb: number[]): number => {
    const [r = 0, g = 0, b = 0] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const root = document.querySelector('.gk-panel') as HTMLElement;
  const ground = luminance(parse(getComputedStyle(root).backgroundColor).slice(0, 3));
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: string[] = [];
  let checked = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement as HTMLElement;
    if (!node.textContent?.trim() || parent.closest('.gk-tip') || parent.offsetParent === null) continue;
    checked++;
    const text = luminance(parse(getComputedStyle(parent).color).slice(0, 3));
    const ratio = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    if (ratio < 4.5) texts.push(`${parent.className || parent.tagName} "${node.textContent}" ${ratio.toFixed(2)}`);
  }
  return { checked, texts };
}

for (const name of ['player', 'recorder', 'spectrogram', 'talk', 'chat'] as const) {
  test(`${name}: its colours are the page's, also of a view that was made before it came into the page`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await mount(page, name, {}, 'before');
    await expect(page.locator('.gk-panel')).toHaveClass(/gk-dark/);
  });
}
