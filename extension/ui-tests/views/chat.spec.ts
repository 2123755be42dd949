// The chat in a plain page: streaming at a flat cost, a model's text that would like to be markup, keys, names.

import { type Page, expect, test } from '@playwright/test';
import { CORPUS } from '../support/hostile-texts.ts';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors } from '../support/views.ts';

failOnPageErrors();

const FIGURES = { rate: 20, first: 0.5, tokens: 3, used: 40, context: 512, bytes: 2 ** 20 };
const row = (at: number, text: string, thinking = ''): unknown => [at, text, thinking, -0.5, [[text, -0.5], ['else', -1.5]]];
const question = { role: 'user', number: 0, places: [0], text: 'a question' };
const answer = (texts: string[] = [], reason: string | null = null): unknown => ({ role: 'assistant', number: 1, places: [1], rows: texts.map((text, i) => row(i, text)), reason, error: '', figures: FIGURES });

async function open(page: Page, texts: string[] = [], reason: string | null = null): Promise<void> {
  await mount(page, 'chat');
  await sendMessage(page, { type: 'state', model: 'stub', system: '', busy: reason === null, messages: [question, answer(texts, reason)] });
  await frame(page);
}

/** What came is shown from the next frame on. */
const frame = (page: Page): Promise<unknown> => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function stream(page: Page, at: number, ...texts: string[]): Promise<void> {
  await sendMessage(page, { type: 'tokens', number: 1, at, rows: texts.map((text, i) => row(at + i, text)), figures: FIGURES });
  await frame(page);
}

test('an answer streams as Markdown, with figures, and ends', async ({ page }) => {
  await open(page);
  await expect(page.locator('.gk-panel')).toHaveAttribute('data-state', 'answering');
  await stream(page, 0, 'Some **bold', '** text.\n\n', '- one\n- two\n\n7. seven\n8. eight\n\n', '```cuda\n__global__ void', ' f() {}\n', '```\n');
  await expect(page.locator('.gk-markdown strong')).toHaveText('bold');
  await expect(page.locator('.gk-markdown li')).toHaveText(['one', 'two', 'seven', 'eight']);
  expect(await page.locator('.gk-markdown ol').evaluateAll((lists) => lists.map((list) => (list as HTMLOListElement).start))).toEqual([7, 8]);
  await expect(page.locator('.gk-code code')).toHaveText('__global__ void f() {}');
  await expect(page.locator('.gk-chat-figures')).toHaveText('20.0 tokens/s \u00b7 first token 0.50 s \u00b7 context 40 of 512 \u00b7 KV 1 MiB');
  await sendMessage(page, { type: 'ended', number: 1, reason: 'cancelled', error: '', figures: FIGURES });
  await expect(page.locator('.gk-note')).toHaveText('Stopped.');
  await expect(page.locator('.gk-panel')).toHaveAttribute('data-state', 'ready');
});

test('tokens that came with the state are not shown twice, and what is missing is asked for', async ({ page }) => {
  await open(page, ['one ', 'two ']);
  await stream(page, 1, 'two ', 'three');
  await expect(page.locator('.gk-markdown')).toHaveText('one two three');
  await page.evaluate(() => ((window.sent as unknown[]).length = 0));
  await stream(page, 7, 'later');
  expect(await page.evaluate(() => window.sent)).toEqual([{ type: 'view' }]);
});

test('the keyboard asks, stops and edits, and its keys stay in the chat', async ({ page }) => {
  await open(page, ['fine'], 'stop');
  await page.evaluate(() => {
    document.addEventListener('keydown', () => document.body.dataset['leaked'] = 'yes');
    (window.sent as unknown[]).length = 0;
  });
  await page.getByRole('textbox', { name: 'Message' }).focus();
  await page.keyboard.type('hello');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('there');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Edit' }).press('Enter');
  await page.keyboard.press('End');
  await page.keyboard.type('?');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Again' }).press('Enter');
  await sendMessage(page, { type: 'state', model: 'stub', system: '', busy: true, messages: [question, answer()] });
  await frame(page);
  await page.getByRole('textbox', { name: 'Message' }).press('Escape');
  expect(await page.evaluate(() => window.sent)).toEqual([
    { type: 'ask', text: 'hello\nthere' },
    { type: 'edit', number: 0, text: 'a question?' },
    { type: 'again', number: 1 },
    { type: 'stop' },
  ]);
  expect(await page.evaluate(() => document.body.dataset['leaked'])).toBeUndefined();
});

test('tokens tell their probabilities', async ({ page }) => {
  await open(page, ['one ', 'two'], 'stop');
  await page.getByRole('button', { name: 'Tokens' }).click();
  await page.locator('.gk-token').nth(1).hover();
  await expect(page.locator('.gk-token-about')).toContainText('"two" 60.7 %');
  await expect(page.locator('.gk-token-about')).toContainText('22.3 %  else');
  await page.locator('.gk-token-list').press('ArrowLeft');
  await expect(page.locator('.gk-token-about')).toContainText('"one "');
});

test(`${CORPUS.length} hostile texts run nothing, fetch nothing and stay texts, whole and cut`, async ({ page }) => {
  const surprises: string[] = [];
  page.on('dialog', (dialog) => (surprises.push(dialog.message()), void dialog.dismiss()));
  page.on('request', (request) => !/^(about|blob):/.test(request.url()) && surprises.push(request.url()));
  const links = [`[x](javascript:window.hit=1)`, `![x](http://127.0.0.1:9/x.png)`, `[x](data:text/html,<script>window.hit=1</script>)`, `<http://127.0.0.1:9/>`, '```\n<img src=x onerror=window.hit=1>', `[x]: javascript:window.hit=1\n\n[x]`, '[x](\u0001javascript:window.hit=1)'];
  for (const text of [...CORPUS, ...links]) {
    await open(page);
    await stream(page, 0, text, '\n\n', ...text.split(''));
    await expect(page.locator('.gk-token')).toHaveCount(2 + text.length);
    const found = await page.evaluate(() => ({
      hit: 'hit' in window,
      kinds: [...document.querySelectorAll('.gk-markdown *')].map((node) => node.localName).filter((name) => /script|img|svg|iframe|style|link|object|embed|video|math|input|form|meta|base|template/.test(name)),
      acting: [...document.querySelectorAll('.gk-markdown *')].flatMap((node) => node.getAttributeNames().filter((name) => /^(on.*|src|srcdoc|style)$/.test(name))),
      links: [...document.querySelectorAll<HTMLAnchorElement>('.gk-markdown a')].map((link) => link.protocol).filter((protocol) => !['http:', 'https:', 'mailto:', ':'].includes(protocol)),
    }));
    expect({ text, ...found }).toEqual({ text, hit: false, kinds: [], acting: [], links: [] });
  }
  expect(surprises).toEqual([]);
});

for (const [what, piece] of [['prose', 'word '], ['one code block', 'x = 1\n'], ['a list', '- item\n']] as const) {
  test(`4000 tokens of ${what} change no more of the page a token at their end than at their beginning`, async ({ page }) => {
    await open(page, what === 'one code block' ? ['```\n'] : []);
    // What is put into the page, in nodes and in characters, for each 10 tokens.
    const changes = await page.evaluate(async (text) => {
      const log = document.querySelector('.gk-log');
      const found: { nodes: number; characters: number }[] = [];
      if (!log) throw new Error('There is no log.');
      let now = { nodes: 0, characters: 0 };
      const count = (node: Node): number => 1 + [...node.childNodes].reduce((sum, child) => sum + count(child), 0);
      new MutationObserver((records) => {
        for (const { addedNodes } of records)
          for (const node of addedNodes) now = { nodes: now.nodes + count(node), characters: now.characters + (node.textContent?.length ?? 0) };
      }).observe(log, { childList: true, subtree: true });
      const from = document.querySelectorAll('.gk-token').length;
      for (let at = from; at + 10 <= from + 4000; at += 10) {
        for (let i = 0; i < 10; i++) window.receive({ type: 'tokens', number: 1, at: at + i, rows: [[at + i, text, '', -0.1, []]], figures: null }, null);
        await new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
        found.push(now);
        now = { nodes: 0, characters: 0 };
      }
      return found;
    }, piece);
    const each = (part: typeof changes, key: 'nodes' | 'characters'): number => part.reduce((sum, one) => sum + one[key], 0) / (10 * part.length);
    expect(await page.locator('.gk-token').count()).toBeGreaterThanOrEqual(4000);
    for (const key of ['nodes', 'characters'] as const) {
      const [first, last] = [each(changes.slice(50, 150), key), each(changes.slice(-100), key)];
      test.info().annotations.push({ type: `${key} a token`, description: `${first} in tokens 500 to 1500, ${last} in the last 1000` });
      expect(first).toBeGreaterThan(0);
      expect(last).toBeLessThan(1.3 * first);
    }
  });
}
