// Figures that need no kernel: pan and zoom over 10 000 tasks, and the heap after an hour of frames, replayed at once.

import { type Page, expect, test } from '@playwright/test';
import { Kind } from '../../core/src/records.ts';
import { type RecordFields, encodeFrame } from '../../core/test/encode.ts';
import { mount, sendFrame } from '../support/plain-page.ts';
import { scenario } from '../support/scenario.ts';
import { chromium } from '../support/chromium.ts';
import { percentile, report } from './figures.ts';

// Frames follow each other as fast as they are drawn: at the screen's pace every one of them would read 16.7 ms.
const UNPACED = ['--disable-frame-rate-limit', '--disable-gpu-vsync'];
test.use({ launchOptions: { ...chromium.launchOptions, args: [...(chromium.launchOptions?.args ?? []), ...UNPACED] } });

const TASKS = 10_000;
const TENANTS = 20;
const MOVES = 240;
const SOAK_FRAMES = 36_000; // an hour at 10 Hz
const CHUNK = 1000;
const PRESSES = 20;

for (const grouping of ['task', 'tenant'] as const) {
  test(`10 000 tasks, lanes by ${grouping}`, async ({ page }) => {
    await mount(page, 'scheduler');
    let seq = 1;
    for (let first = 0; first < TASKS; first += CHUNK) {
      const records: RecordFields[] = [];
      for (let n = first; n < first + CHUNK; n++) {
        const t = 1e9 + n * 5e6;
        const step = (at: number, from: number, to: number): number => records.push({ kind: 32, t: at, a: n + 1, b: from * 256 + to, name: 1 + (n % TENANTS) });
        step(t, 0, 2);
        step(t + 2e7, 2, 3);
        step(t + 3e7, 3, 4);
        step(t + 9e7, 4, 6);
        // Each tenant has a block on the host in six of eight of its tasks: no more stretches than are kept, so that they go all along.
        const turn = Math.floor(n / TENANTS) % 8;
        const block = { t: t + 5e7, a: 4096 * (1 + (n % TENANTS)), b: 2 ** 20, tenant: 1 + (n % TENANTS) };
        if (turn === 0) records.push({ ...block, kind: Kind.EVICT });
        if (turn === 6) records.push({ ...block, kind: Kind.RESTORE });
      }
      const names = first === 0 ? Array.from({ length: TENANTS }, (_, i): [number, string] => [i + 1, `tenant ${i}`]) : [];
      await sendFrame(page, encodeFrame(seq, 1e9 + (first + CHUNK) * 5e6 + 1e8, { records, names }));
      seq += records.length + 1;
    }
    await page.getByLabel('One lane for each').selectOption(grouping);
    await page.getByRole('button', { name: 'Show all tasks' }).click();
    await expectEvicted(page);
    const intervals = await page.evaluate(async (moves) => {
      const canvas = document.querySelector('.gk-gantt canvas') as HTMLCanvasElement;
      const keys = ['+', '+', 'ArrowLeft', 'PageUp', 'ArrowRight', '-', 'PageDown', '-'];
      const nextFrame = (): Promise<number> => new Promise((done) => requestAnimationFrame(done));
      const begun = [await nextFrame()];
      for (let i = 0; i < moves; i++) {
        canvas.dispatchEvent(new KeyboardEvent('keydown', { key: keys[i % keys.length] ?? '+', bubbles: true }));
        begun.push(await nextFrame());
      }
      return begun.slice(1).map((at, i) => at - (begun[i] ?? 0));
    }, MOVES);
    const [p50, p95, max] = [0.5, 0.95, 1].map((part) => percentile(intervals, part)) as [number, number, number];
    report(`pan_zoom_by_${grouping}`, { tasks: TASKS, moves: MOVES, frame_p50_ms: p50, frame_p95_ms: p95, frame_max_ms: max });
  });
}

/** What is measured is drawn with dashes: a task's line tells of them. */
async function expectEvicted(page: Page): Promise<void> {
  const canvas = page.locator('.gk-gantt canvas');
  await canvas.focus();
  await page.keyboard.press('ArrowUp');
  await expect(page.locator('.gk-tip')).toContainText('evicted to host memory: up to 1 MiB');
  await page.keyboard.press('Escape');
}

test('a control that nobody answers', async ({ page }) => {
  await mount(page, 'scheduler', { controls: { actions: ['pause'] } });
  for (const frame of scenario(1)) await sendFrame(page, frame);
  const waits: number[] = [];
  for (let i = 0; i < PRESSES; i++) {
    waits.push(
      await page.getByRole('button', { name: 'Pause', exact: true }).evaluate(async (node) => {
        const status = document.querySelector('.gk-control-status') as HTMLElement;
        const began = performance.now();
        (node as HTMLElement).click();
        while (status.dataset['state'] !== 'queued') await new Promise((done) => requestAnimationFrame(done));
        return performance.now() - began;
      }),
    );
  }
  report('control_queued', { presses: PRESSES, p50_ms: percentile(waits, 0.5), max_ms: percentile(waits, 1) });
});

test('an hour of frames at once', async ({ page }) => {
  const client = await page.context().newCDPSession(page);
  const heap = async (): Promise<number> => {
    await client.send('HeapProfiler.collectGarbage');
    return (await client.send('Runtime.getHeapUsage')).usedSize;
  };
  for (const name of ['memory', 'scheduler'] as const) {
    await mount(page, name);
    let frames: string[] = [];
    let sent = 0;
    let settled = 0;
    const began = Date.now();
    for (const frame of scenario(SOAK_FRAMES)) {
      frames.push(Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString('base64'));
      if (frames.length < CHUNK) continue;
      await page.evaluate(async (all) => {
        for (const [i, text] of all.entries()) {
          window.receive({ type: 'frame' }, text);
          if (i % 100 === 0) await new Promise((done) => requestAnimationFrame(done));
        }
      }, frames);
      sent += frames.length;
      frames = [];
      // The rings of the store are full after 8192 samples: growth from there on would be a leak.
      if (settled === 0 && sent > 10_000) settled = await heap();
    }
    const end = await heap();
    const replaySeconds = (Date.now() - began) / 1000;
    await page.evaluate(() => window.unmount());
    report(`soak_${name}`, { frames: sent, replay_s: Number(replaySeconds.toFixed(1)), heap_settled_mb: settled / 1e6, heap_end_mb: end / 1e6, growth_mb: (end - settled) / 1e6 });
  }
});
