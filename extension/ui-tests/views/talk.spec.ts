// Push to talk in a plain page: a stand-in microphone, an answer that is heard, and every way to hold and to interrupt.

import { type Page, expect, test } from '@playwright/test';
import { chromium } from '../support/chromium.ts';
import { mount, sendMessage } from '../support/plain-page.ts';
import { listen } from '../support/stub-sound.ts';
import { failOnPageErrors, panel } from '../support/views.ts';

// Chromium's own stand-in: a beep every half second.
test.use({ launchOptions: { ...chromium.launchOptions, args: [...(chromium.launchOptions?.args ?? []), '--use-fake-device-for-media-stream'] } });
failOnPageErrors();

const RATE = 16000;
const button = (page: Page) => page.getByRole('button', { name: 'Hold to speak' });
const sent = (page: Page, type: string) =>
  page.evaluate((wanted) => (window.sent as { type: string; id?: number }[]).filter(({ type }) => type === wanted), type);
const state = (page: Page, name: string) => expect(panel(page)).toHaveAttribute('data-state', name);

async function open(page: Page, address = 'http://localhost/'): Promise<void> {
  await listen(page);
  await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>talk</title>' }));
  await page.goto(address);
  await page.context().grantPermissions(['microphone'], { origin: 'http://localhost' });
  await mount(page, 'talk');
  await sendMessage(page, { type: 'state', rate: RATE, busy: false, note: '', turns: [] });
}

/** Holds the button until something was recorded. */
async function speak(page: Page): Promise<void> {
  const before = (await sent(page, 'release')).length;
  await button(page).hover();
  await page.mouse.down();
  await state(page, 'listening');
  await expect.poll(() => page.evaluate(() => window.blocks.length)).toBeGreaterThan(5);
  await page.mouse.up();
  await expect.poll(() => sent(page, 'release').then(({ length }) => length)).toBe(before + 1);
}

/** The kernel answers the last question with seconds of a tone. */
async function answer(page: Page, seconds: number, ended: boolean): Promise<void> {
  const id = (await sent(page, 'release')).at(-1)?.id ?? -1;
  const turn = { heard: 'What is it?', answer: 'A tone.', interrupted: false };
  await sendMessage(page, { type: 'turn', number: 0, busy: !ended, note: '', turn });
  await page.evaluate(({ id, seconds, rate }) => {
    const tone = Float32Array.from({ length: seconds * rate }, (_, i) => 0.5 * Math.sin(i / 10));
    window.receiveBuffers({ type: 'sound', id, rate, at: 0 }, [new DataView(tone.buffer)]);
  }, { id, seconds, rate: 24000 });
}

test('what is said while the button is held goes to the kernel, and no more', async ({ page }) => {
  await open(page);
  await speak(page);
  expect(await sent(page, 'press')).toHaveLength(1);
  await state(page, 'ready');
  const [sizes, count] = await page.evaluate(() => [[...new Set(window.blocks.map(({ length }) => length))], window.blocks.length] as const);
  expect(sizes).toEqual([RATE / 20]);
  await page.waitForTimeout(300);
  expect(await page.evaluate(() => window.blocks.length)).toBe(count);
});

test('the space key holds it, however often it repeats', async ({ page }) => {
  await open(page);
  await button(page).focus();
  await page.keyboard.down('Space');
  await state(page, 'listening');
  await page.keyboard.down('Space'); // repeats
  await expect(button(page)).toHaveAttribute('aria-pressed', 'true');
  await page.keyboard.up('Space');
  await expect(button(page)).toHaveAttribute('aria-pressed', 'false');
  await expect.poll(() => sent(page, 'release')).toHaveLength(1);
  expect(await sent(page, 'press')).toHaveLength(1);
});

test('a screen reader presses once to begin and once to end', async ({ page }) => {
  await open(page);
  await button(page).evaluate((node) => (node as HTMLElement).click());
  await state(page, 'listening');
  await button(page).evaluate((node) => (node as HTMLElement).click());
  await expect.poll(() => sent(page, 'release')).toHaveLength(1);
});

test('what was heard is read, the answer is heard to its end', async ({ page }) => {
  await open(page);
  await speak(page);
  await sendMessage(page, { type: 'turn', number: 0, busy: true, note: '', turn: null });
  await state(page, 'thinking');
  await answer(page, 1, false);
  await expect(page.getByRole('log')).toHaveText('You: What is it?Answer: A tone.');
  await state(page, 'speaking');
  await expect.poll(() => page.evaluate(() => window.heard())).toBeGreaterThan(0.3);
  await state(page, 'thinking'); // the next sentence is late
  await sendMessage(page, { type: 'state', rate: RATE, busy: false, note: '', turns: [{ heard: 'What is it?', answer: 'A tone.', interrupted: false }] });
  await state(page, 'ready');
  expect(await page.evaluate(() => window.heard())).toBe(0);
});

test('the answer is interrupted by its button and by speaking', async ({ page }) => {
  await open(page);
  await expect(page.getByRole('button', { name: 'Interrupt' })).toBeDisabled();
  await speak(page);
  await answer(page, 20, false);
  await state(page, 'speaking');
  await page.getByRole('button', { name: 'Interrupt' }).click();
  await expect.poll(() => page.evaluate(() => window.heard())).toBe(0);
  expect(await sent(page, 'stop')).toHaveLength(1);
  await expect(button(page)).toBeFocused();
  await answer(page, 1, true); // it was on its way
  await state(page, 'ready');
  await speak(page);
  await answer(page, 20, true);
  await expect.poll(() => page.evaluate(() => window.heard())).toBeGreaterThan(0.3);
  await button(page).hover();
  await page.mouse.down();
  await expect.poll(() => page.evaluate(() => window.heard())).toBe(0);
  await page.mouse.up();
});

test('a button that is let go of before the microphone opens says what to do', async ({ page }) => {
  await page.addInitScript(() => {
    const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wanted) => {
      await new Promise((done) => setTimeout(done, 500));
      return real(wanted);
    };
  });
  await open(page);
  await button(page).click();
  await expect(page.getByRole('status')).toHaveText(/speak when it says Listening/);
  expect(await sent(page, 'release')).toHaveLength(0);
});

test('a missing microphone is said plainly, to the kernel too', async ({ page }) => {
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('none', 'NotFoundError'));
  });
  await open(page);
  await button(page).hover();
  await page.mouse.down();
  await expect(page.getByRole('status')).toHaveText('There is no microphone.');
  await state(page, 'refused');
  await page.mouse.up();
  expect(await page.evaluate(() => window.sent)).toContainEqual({ type: 'refused', text: 'There is no microphone.' });
});

test('a page that is neither HTTPS nor localhost says what it needs', async ({ page }) => {
  await open(page, 'http://notebooks.test/');
  await button(page).hover();
  await page.mouse.down();
  await expect(page.getByRole('status')).toHaveText(/HTTPS or localhost only/);
  await page.mouse.up();
});
