// The chat in a plain page: streaming at a flat cost, a model's text that would like to be markup, keys, names.

import { type Page, expect, test } from '@playwright/test';
import { CORPUS } from '../support/hostile-texts.ts';
import { mount, sendMessage } from '../support/plain-page.ts';
import { failOnPageErrors } from '../support/views.ts';

failOnPageErrors();

const FIGURES = { rate: 20, first: 0.5, tokens: 3, used: 40, context: 512, bytes: 2 ** 20 };
const row = (at: number, text: string, thinking = ''): unknown => [at, text, thinking, -0.5, [[text, -0.5], ['else', -1.5]]];
const question = { role: 'user', number: 0, places: [0], text: 'a question' };
const answer = (texts: string[] = [], reason: string | null = null): unknown => ({ role: 'assistant', number: 1, places: [1], rows: texts.map((text, i) => row(i, text)), reason, ended: '', error: '', stage: reason === null && texts.length === 0 ? 'Reading 34 tokens' : '', note: '', figures: FIGURES });
const SETTINGS = { max_new_tokens: null, temperature: null, top_p: null };
const stateOf = (messages: unknown[], busy: boolean, more: object = {}): unknown => ({ type: 'state', model: 'stub', system: '', busy, settings: SETTINGS, messages, chats: ['a question'], chat: 0, ...more });

async function open(page: Page, texts: string[] = [], reason: string | null = null): Promise<void> {
  await mount(page, 'chat');
  await sendMessage(page, stateOf([question, answer(texts, reason)], reason === null));
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
  await sendMessage(page, { type: 'ended', number: 1, reason: 'cancelled', ended: 'Stopped.', error: '', figures: FIGURES });
  await expect(page.locator('.gk-note').last()).toHaveText('Stopped.');
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
  await sendMessage(page, stateOf([question, answer()], true));
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

test('until the first token it says what is done, with dots that move', async ({ page }) => {
  await open(page);
  const stage = page.locator('.gk-stage');
  await expect(stage).toHaveText('Reading 34 tokens');
  expect(await stage.evaluate((node) => getComputedStyle(node, '::after').animationName)).toBe('gk-dots');
  await sendMessage(page, { type: 'stage', number: 1, stage: 'Compiling sampling.cu', note: 'The 4 oldest messages no longer fit.' });
  await expect(stage).toHaveText('Compiling sampling.cu');
  await expect(page.locator('.gk-left-out')).toHaveText('The 4 oldest messages no longer fit.');
  await stream(page, 0, 'first');
  await expect(stage).toBeHidden();
});

test('a question leaves the field when the kernel has it, and is back when it is refused', async ({ page }) => {
  await open(page, ['fine'], 'stop');
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('next');
  await field.press('Enter');
  await expect(field).toHaveValue('next');
  const next = { role: 'user', number: 2, places: [2], text: 'next' };
  await sendMessage(page, stateOf([question, answer(['fine'], 'stop'), next, { ...(answer() as object), number: 3, places: [3] }], true));
  await expect(field).toHaveValue('');
  await sendMessage(page, stateOf([question, answer(['fine'], 'stop')], false));
  await sendMessage(page, { type: 'refused', text: 'the question is too long', question: 'next' });
  await expect(field).toHaveValue('next');
  await expect(page.locator('.gk-chat-status')).toHaveText('the question is too long');
  await expect(page.locator('.gk-question')).toHaveText(['a question']);
  // Something else was begun meanwhile: it stays.
  await field.fill('other');
  await sendMessage(page, { type: 'refused', text: 'no', question: 'next' });
  await expect(page.locator('.gk-chat-status')).toHaveText('no');
  await expect(field).toHaveValue('other');
});

test('when the kernel has ended it says so and swallows no text', async ({ page }) => {
  await open(page, ['fine'], 'stop');
  const field = page.getByRole('textbox', { name: 'Message' });
  await page.locator('.gk-chat').evaluate((node) => (node.dataset['gkEnded'] = ''));
  await expect(page.locator('.gk-panel')).toHaveAttribute('data-state', 'ended');
  await expect(page.locator('.gk-chat-status')).toContainText('The kernel of this chat has ended');
  await page.evaluate(() => ((window.sent as unknown[]).length = 0));
  await field.fill('hello');
  await field.press('Enter');
  await expect(field).toHaveValue('hello');
  expect(await page.evaluate(() => window.sent)).toEqual([]);
});

test('Ctrl+S goes to the page around the chat, and no other key does', async ({ page }) => {
  await open(page, ['fine'], 'stop');
  await page.evaluate(() => {
    document.body.dataset['keys'] = '';
    document.addEventListener('keydown', (event) => {
      document.body.dataset['keys'] += `${event.ctrlKey ? 'Ctrl+' : ''}${event.key}:${event.keyCode} `;
      event.preventDefault();
    });
  });
  await page.getByRole('textbox', { name: 'Message' }).focus();
  for (const key of ['Control+s', 'Control+b', 'a', 'Control+Alt+s']) await page.keyboard.press(key);
  expect(await page.evaluate(() => document.body.dataset['keys'])).toBe('Ctrl+s:83 ');
});

test('turns are deleted, answers copied, chats changed and settings set', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => undefined);
  await open(page, ['**fine** ', '`x`'], 'stop');
  await page.evaluate(() => {
    (window.sent as unknown[]).length = 0;
    Object.defineProperty(navigator, 'clipboard', { value: { writeText: (text: string) => Promise.resolve((document.body.dataset['copied'] = text)) } });
  });
  await page.getByRole('button', { name: 'Copy the answer' }).click();
  expect(await page.evaluate(() => document.body.dataset['copied'])).toBe('**fine** `x`');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'New chat' }).click();
  await sendMessage(page, stateOf([question, answer(['fine'], 'stop')], false, { chats: ['a question', 'another'], chat: 1, settings: { ...SETTINGS, top_p: 0.5 } }));
  await page.getByRole('combobox', { name: 'Chats' }).selectOption('1. a question');
  await page.locator('summary', { hasText: 'Settings' }).click();
  await expect(page.getByLabel('Top-p')).toHaveValue('0.5');
  await page.getByLabel('Temperature').fill('0.7');
  await page.getByLabel('Temperature').press('Tab');
  expect(await page.evaluate(() => window.sent)).toEqual([
    { type: 'delete', number: 0 },
    { type: 'new' },
    { type: 'go', number: 0 },
    { type: 'settings', settings: { temperature: 0.7, top_p: 0.5, max_new_tokens: null } },
  ]);
});

test('what is typed is kept while the view is drawn again', async ({ page }) => {
  await open(page, ['fine'], 'stop');
  await page.getByRole('textbox', { name: 'Message' }).fill('a draft');
  await page.evaluate(() => window.again());
  await expect(page.getByRole('textbox', { name: 'Message' })).toHaveValue('a draft');
});

test('formulas stay as they were written, and whoever can set them is asked once each is whole', async ({ page }) => {
  await open(page);
  await page.evaluate(() => {
    document.body.dataset['asked'] = '';
    document.addEventListener('pygpukit:typeset', ({ target }) => (document.body.dataset['asked'] += `${(target as HTMLElement).textContent}|`));
  });
  await stream(page, 0, 'So \\(a\\,b_1 + c_2', '\\) and $x_i * y_i$, but 5 $ and 6 $.\n\n', '\\[\n\\frac{a}{b}\n- c\n\n= d\n\\]\n\n$$\ne^{x}\n$$\n', '\n`\\(code\\)` \\[\\href{javascript:hit}{x}\\]\n\n');
  await sendMessage(page, { type: 'ended', number: 1, reason: 'stop', ended: '', error: '', figures: FIGURES });
  await frame(page);
  const expected = ['\\(a\\,b_1 + c_2\\)', '$x_i * y_i$', '\\[\n\\frac{a}{b}\n- c\n\n= d\n\\]', '$$\ne^{x}\n$$', '\\[\\ href{javascript:hit}{x}\\]'];
  expect(await page.locator('.gk-math').allTextContents()).toEqual(expected);
  expect((await page.evaluate(() => document.body.dataset['asked']))?.split('|').slice(0, -1)).toEqual(expected);
  await expect(page.locator('.gk-markdown :not(pre) > code')).toHaveText('\\(code\\)');
  await expect(page.locator('.gk-markdown')).toContainText('but 5 $ and 6 $.');
});

test('code is coloured, Python and CUDA, and stays the same text', async ({ page }) => {
  const python = 'def f(x):  # twice\n    """of\n    x"""\n    return x * 2.5\n';
  const cuda = '#include <cuda.h>\n__global__ void f(float* x) {\n  /* a\n     b */ x[threadIdx.x] = 1.5f; // c\n}\n';
  await open(page);
  await stream(page, 0, ...('```python\n' + python + '```\n\n```cuda\n' + cuda + '```\n\n```other\n<b>if\n```\n').match(/[\s\S]{1,7}/g)!);
  await expect(page.locator('.gk-code code').nth(0)).toHaveText(python.trimEnd());
  expect(await page.locator('.gk-code code').allTextContents()).toEqual([python.trimEnd(), cuda.trimEnd(), '<b>if']);
  const kinds = (at: number): Promise<string[]> => page.locator('.gk-code code').nth(at).locator('span').evaluateAll((all) => all.map((one) => `${one.className.slice(5)} ${one.textContent}`));
  expect(await kinds(0)).toEqual(['keyword def', 'comment # twice', 'string """of', 'string     x"""', 'keyword return', 'number 2.5']);
  expect(await kinds(1)).toEqual(['directive #include', 'keyword __global__', 'keyword void', 'keyword float', 'comment /* a', 'comment      b */', 'name threadIdx', 'number 1.5f', 'comment // c']);
  expect(await kinds(2)).toEqual([]);
});

test('no text holds the page up or is lost, however deep or tangled it is', async ({ page }) => {
  const nested = Array.from({ length: 2500 }, (_, depth) => `${' '.repeat(2 * depth)}- a`).join('\n');
  const texts = ['[a]('.repeat(3000), nested, '*a_'.repeat(8000), '> '.repeat(9000), '- '.repeat(9000), '[a](<b'.repeat(3000), '`a``b```'.repeat(5000), '\\['.repeat(9000), '$a'.repeat(9000), '|a'.repeat(9000), '\\begin{a}'.repeat(3000), '![a]['.repeat(3000), '"'.repeat(30000), '```\n' + '"""'.repeat(9000), '```cuda\n' + '/*'.repeat(9000), '```py\n' + "'".repeat(9000) + '\n'];
  for (const text of texts) {
    await mount(page, 'chat');
    const took = await page.evaluate(async (message) => {
      const began = performance.now();
      window.receive(message, null);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - began;
    }, stateOf([question, answer([text], 'stop')], false));
    expect(took, text.slice(0, 20)).toBeLessThan(3000); // a busy machine; alone each takes less than 300 ms
    const letters = (all: string): number => all.replace(/[^a-z]/g, '').length;
    expect(letters((await page.locator('.gk-markdown').textContent()) ?? '')).toBeGreaterThanOrEqual(letters(text.replace(/^```.*/, '')) * 0.9);
  }
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
  const links = [`[x](javascript:window.hit=1)`, `![x](http://127.0.0.1:9/x.png)`, `[x](data:text/html,<script>window.hit=1</script>)`, `<http://127.0.0.1:9/>`, '```\n<img src=x onerror=window.hit=1>', '```py\n<img src=x onerror=window.hit=1>\n', '\\(<img src=x onerror=window.hit=1>\\)', '$<img src=x onerror=window.hit=1>$', '\\[\n<script>window.hit=1</script>\n\\]', `[x]: javascript:window.hit=1\n\n[x]`, '[x](\u0001javascript:window.hit=1)'];
  for (const text of [...CORPUS, ...links]) {
    await open(page);
    await stream(page, 0, text, '\n\n', ...text.split(''));
    await expect(page.locator('.gk-token')).toHaveCount(2 + text.length);
    const state = await page.evaluate(() => ({
      hit: 'hit' in window,
      kinds: [...document.querySelectorAll('.gk-markdown *')].map((node) => node.localName).filter((name) => /script|img|svg|iframe|style|link|object|embed|video|math|input|form|meta|base|template/.test(name)),
      acting: [...document.querySelectorAll('.gk-markdown *')].flatMap((node) => node.getAttributeNames().filter((name) => /^(on.*|src|srcdoc|style)$/.test(name))),
      links: [...document.querySelectorAll<HTMLAnchorElement>('.gk-markdown a')].map((link) => link.protocol).filter((protocol) => !['http:', 'https:', 'mailto:', ':'].includes(protocol)),
    }));
    expect({ text, ...state }).toEqual({ text, hit: false, kinds: [], acting: [], links: [] });
  }
  expect(surprises).toEqual([]);
});

for (const [what, piece] of [['prose', 'word '], ['one code block', 'x = 1\n'], ['a list', '- item\n']] as const) {
  test(`4000 tokens of ${what} change no more of the page a token at their end than at their beginning`, async ({ page }) => {
    await open(page, what === 'one code block' ? ['```\n'] : []);
    // What is put into the page, in nodes and in characters, for each 10 tokens.
    const changes = await page.evaluate(async (text) => {
      const log = document.querySelector('.gk-log');
      const state: { nodes: number; characters: number }[] = [];
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
        state.push(now);
        now = { nodes: 0, characters: 0 };
      }
      return state;
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
