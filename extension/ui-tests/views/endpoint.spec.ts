// The page of `pygpukit serve`: the key, the models that chat, an answer as it comes, Stop, New chat, and errors in words.

import { type Page, expect, test } from '@playwright/test';
import { Endpoint } from '../support/endpoint.ts';
import { failOnPageErrors } from '../support/views.ts';

let endpoint: Endpoint;

test.beforeEach(async () => {
  endpoint = await Endpoint.start();
});
test.afterEach(() => endpoint.stop());
failOnPageErrors();

/** Opens the page and gives it the key. */
async function open(page: Page): Promise<void> {
  await page.goto(endpoint.url);
  await page.getByLabel('Key').fill(endpoint.key);
  await page.getByLabel('Key').press('Tab');
  await expect(models(page)).not.toHaveCount(0);
}

const models = (page: Page) => page.getByLabel('Model').locator('option');
const answers = (page: Page) => page.locator('#said .assistant');
const send = (page: Page) => page.getByRole('button', { name: 'Send' });
const stop = (page: Page) => page.getByRole('button', { name: 'Stop' });

async function ask(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await send(page).click();
}

test('without the key there are no models, with it those that chat', async ({ page }) => {
  const refused = page.waitForResponse((response) => response.url().endsWith('/v1/models'));
  await page.goto(endpoint.url);
  expect((await refused).status()).toBe(401);
  await expect(models(page)).toHaveCount(0);
  await page.getByLabel('Key').fill(endpoint.key);
  await page.getByLabel('Key').press('Tab');
  await expect(models(page)).toHaveText(['stub', 'smollm2-135m-instruct']); // neither the encoder nor what hears
});

test('an answer is shown as it comes, as text, and the next question has it', async ({ page }) => {
  await open(page);
  await ask(page, 'one <b>two</b> three');
  endpoint.release(1, 2);
  await expect(answers(page)).toHaveText('1 one');
  await expect(send(page)).toBeDisabled();
  endpoint.release(1, 1);
  await expect(answers(page)).toHaveText('1 one <b>two</b>');
  endpoint.release(1, 1);
  await expect(answers(page)).toHaveText('1 one <b>two</b> three');
  await expect(send(page)).toBeEnabled();
  await ask(page, 'again');
  endpoint.release(2, 2);
  await expect(answers(page)).toHaveText(['1 one <b>two</b> three', '3 again']);
});

test('Stop ends an answer and keeps what came', async ({ page }) => {
  await open(page);
  await expect(stop(page)).toBeDisabled();
  await ask(page, 'one two three');
  endpoint.release(1, 2);
  await expect(answers(page)).toHaveText('1 one');
  await stop(page).click();
  await expect(send(page)).toBeEnabled();
  await expect(page.locator('#said .error')).toHaveCount(0);
  await ask(page, 'more');
  endpoint.release(2, 2);
  await expect(answers(page)).toHaveText(['1 one', '3 more']);
});

test('New chat begins without what was said', async ({ page }) => {
  await open(page);
  await ask(page, 'one');
  endpoint.release(1, 2);
  await expect(answers(page)).toHaveText('1 one');
  await page.getByRole('button', { name: 'New chat' }).click();
  await expect(page.locator('#said > *')).toHaveCount(0);
  await ask(page, 'two');
  endpoint.release(2, 2);
  await expect(answers(page)).toHaveText('1 two');
});

test('a wrong key and a failing model are told, and the next question is answered', async ({ page }) => {
  await open(page);
  await page.getByLabel('Key').fill('wrong');
  await ask(page, 'one');
  await expect(page.locator('#said .error')).toHaveText(/API key/);
  await page.getByLabel('Key').fill(endpoint.key);
  await ask(page, 'fail');
  endpoint.release(1, 2);
  await expect(page.locator('#said .error').nth(1)).toHaveText(/the device fell off the bus/);
  await ask(page, 'two');
  endpoint.release(2, 2);
  await expect(answers(page).last()).toHaveText(/two/);
});
