// The player in a plain page: it is heard at once, streams, seeks, and says what keeps it from playing.

import { type Page, expect, chromium as launcher, test } from '@playwright/test';
import { chromium } from '../support/chromium.ts';
import { mount } from '../support/plain-page.ts';
import { openSoundPage } from '../support/sound-page.ts';
import { giveSound, listen } from '../support/stub-sound.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

failOnPageErrors();

const RATE = 22050;
const place = (page: Page): Promise<number> => page.locator('.gk-sound-time').textContent().then((text) => parseFloat(text ?? ''));
const slider = (page: Page) => page.getByRole('slider', { name: 'Place in the sound' });

async function open(page: Page, sound: Parameters<typeof giveSound>[1] = { rate: RATE, frames: 4 * RATE }): Promise<void> {
  await listen(page);
  await mount(page, 'player');
  await giveSound(page, sound);
  if (sound.frames > 0) await page.evaluate(() => window.answerWants(0));
}

/** Presses Play. How long before it is heard the first sample was given to the output, in ms of the output's own clock, and the ms until it was heard. */
async function pressed(page: Page): Promise<{ leadMs: number; tookMs: number }> {
  const seen = await page.evaluate(async () => {
    const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Play');
    const before = window.leads().length;
    const began = performance.now();
    button?.click();
    const lead = window.leads()[before]; // given while the press is handled: nothing is waited for
    while (window.heard() === 0) await new Promise((done) => setTimeout(done, 1));
    return { lead, tookMs: performance.now() - began };
  });
  if (seen.lead === undefined) throw new Error('The press gave the output nothing.');
  return { leadMs: 1000 * seen.lead, tookMs: seen.tookMs };
}

/** Milliseconds on this machine are told; what the player adds to them is the lead, the same on every machine. */
function quick(all: { leadMs: number; tookMs: number }[]): void {
  test.info().annotations.push({ type: 'ms to the first sound', description: all.map(({ tookMs }) => tookMs.toFixed(0)).join(', ') });
  for (const { leadMs } of all) expect(leadMs).toBeLessThan(30);
}

test('the first press of a browser that never played is heard at once: its output is open since the player was shown', async () => {
  const browser = await launcher.launch(chromium.launchOptions);
  const page = await browser.newPage();
  await open(page);
  // Nobody points at it first.
  await expect.poll(() => page.evaluate(() => window.contexts().length)).toBe(1);
  const first = await pressed(page);
  await browser.close();
  quick([first]);
});

test('players of one rate share an output, which closes with the last', async ({ page }) => {
  await listen(page);
  await openSoundPage(page); // which mount() adds to
  await mount(page, 'player');
  await giveSound(page, { rate: RATE, frames: 4 * RATE });
  const first = await page.evaluateHandle(() => window.unmount);
  await mount(page, 'player');
  await giveSound(page, { rate: RATE, frames: 4 * RATE });
  await expect.poll(() => page.evaluate(() => window.contexts())).toHaveLength(1);
  await expect(page.getByRole('button', { name: 'Play' })).toHaveCount(2);
  await page.evaluate((unmount) => unmount(), first);
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => page.evaluate(() => window.contexts())).toEqual(['running']);
  await page.evaluate(() => window.unmount());
  await expect.poll(() => page.evaluate(() => window.contexts())).toEqual(['closed']);
});

test('each next press is heard at once, too', async ({ page }) => {
  await open(page);
  const all = [];
  for (let round = 0; round < 5; round++) {
    all.push(await pressed(page));
    await page.getByRole('button', { name: 'Pause' }).click();
    await expect.poll(() => page.evaluate(() => window.heard())).toBe(0);
  }
  quick(all);
});

test('it plays to its end, asks for what is not here, and begins again', async ({ page }) => {
  await open(page, { rate: RATE, frames: 2 * RATE });
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
  await expect(panel(page)).toHaveAttribute('data-state', 'ready');
  await expect(page.locator('.gk-sound-time')).toHaveText('2.0 of 2.0 s');
  expect(await page.evaluate(() => window.sent)).toContainEqual({ type: 'want', at: 16384 });
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => place(page)).toBeLessThan(1);
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
});

test('a stream waits in silence for what is late, and goes on', async ({ page }) => {
  await open(page, { rate: RATE, frames: 4096, ended: false });
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.locator('.gk-sound-status')).toHaveText('Waiting for more of the sound.');
  await page.evaluate((rate) => window.give(4096, rate - 4096, rate, true), RATE);
  await expect(page.locator('.gk-sound-time')).toHaveText('1.0 of 1.0 s');
  await expect(panel(page)).toHaveAttribute('data-state', 'ready');
});

test('the keyboard plays and seeks, and its keys stay here', async ({ page }) => {
  await open(page, { rate: RATE, frames: 30 * RATE });
  await page.evaluate(() => document.addEventListener('keydown', () => (document.body.dataset['leaked'] = 'yes')));
  await slider(page).focus();
  for (const [key, at] of [['ArrowRight', 1], ['PageUp', 11], ['ArrowLeft', 10], ['End', 30], ['Home', 0]] as const) {
    await page.keyboard.press(key);
    expect(await place(page)).toBe(at);
    await expect(slider(page)).toHaveAttribute('aria-valuetext', `${at} of 30.0 seconds`);
  }
  await page.keyboard.press('Space');
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
  await page.keyboard.press('Space');
  await expect(panel(page)).toHaveAttribute('data-state', 'ready');
  expect(await page.evaluate(() => document.body.dataset['leaked'])).toBeUndefined();
});

test('a pointer seeks, also while it plays', async ({ page }) => {
  await open(page, { rate: RATE, frames: 20 * RATE });
  const box = await slider(page).boundingBox();
  if (!box) throw new Error('The slider is not there.');
  await page.mouse.click(box.x + box.width / 2, box.y + 20);
  expect(await place(page)).toBeCloseTo(10, 0);
  await page.getByRole('button', { name: 'Play' }).click();
  await page.mouse.click(box.x + box.width / 4, box.y + 20);
  await expect.poll(() => place(page)).toBeLessThan(7);
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
});

/** A page with a sound that plays by itself, in a browser that waits for a press. */
async function heldBack(page: Page): Promise<void> {
  // Whoever drives a page here acts as a person does, so that nothing is ever held back: a stand-in waits for a real press.
  await page.addInitScript(() => {
    let pressed = false;
    document.addEventListener('pointerdown', () => (pressed = true), true);
    Object.defineProperty(navigator, 'userActivation', { get: () => ({ hasBeenActive: pressed }) });
    const resume = AudioContext.prototype.resume;
    AudioContext.prototype.resume = function (this: AudioContext) {
      return pressed ? resume.call(this) : this.suspend();
    };
  });
  await open(page, { rate: RATE, frames: 60 * RATE, autoplay: true });
  await page.evaluate(() => window.answerWants(0));
  await expect(page.locator('.gk-sound-status')).toHaveText(/plays no sound before something on this page was pressed/);
  await expect(panel(page)).toHaveAttribute('data-state', 'blocked');
}

test('a sound that the browser holds back says so, and plays when it is told to', async ({ page }) => {
  await heldBack(page);
  await page.getByRole('button', { name: 'Play' }).hover();
  await page.mouse.down();
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
  await page.mouse.up();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
});

test('a key pauses a sound that began with a press that was let go of elsewhere', async ({ page }) => {
  await heldBack(page);
  await page.getByRole('button', { name: 'Play' }).hover();
  await page.mouse.down();
  await expect(panel(page)).toHaveAttribute('data-state', 'playing');
  await page.mouse.move(1, 1);
  await page.mouse.up();
  await page.getByRole('button', { name: 'Pause' }).focus();
  await page.keyboard.press('Space');
  await expect(panel(page)).toHaveAttribute('data-state', 'ready');
});

test('a rate that no browser plays, and an empty sound, are said plainly', async ({ page }) => {
  await open(page, { rate: 400_000, frames: 1000 });
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.locator('.gk-sound-status')).toHaveText(/No browser plays a rate of 400000 Hz: resample/);
  await open(page, { rate: RATE, frames: 0 });
  await expect(page.locator('.gk-sound-status')).toHaveText('The sound is empty.');
  await expect(page.getByRole('button', { name: 'Play' })).toBeDisabled();
});

test('what the kernel says of the samples is shown', async ({ page }) => {
  await open(page, { rate: RATE, frames: 1000, note: 'The peak is 2.' });
  await expect(page.locator('.gk-note')).toHaveText('The peak is 2.');
});
