// A chat with a stub model in JupyterLab: it streams, stops while a cell is busy, edits, and is there again after a reload.

import { join } from 'node:path';
import { type Locator, expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

test.describe.configure({ mode: 'serial' });

const TESTS = join(import.meta.dirname, '../../../tests/support');
const SETUP = `
import sys
sys.path.insert(0, ${JSON.stringify(TESTS)})
import pygpukit as gp
from stub_model import StubModel
%load_ext pygpukit
model = StubModel(lambda messages: ["Say ", "**", messages[-1]["content"], "**\\n\\n", "\`\`\`cuda\\n__global__ void f() {}\\n", "\`\`\`\\n", *["more "] * 50], gated=True)  # 56 tokens, and the end
chat = gp.llm.chat(model)
`;
const [SETUP_AT, CHAT_AT] = [0, 1];

const FORMULA = String.raw`model = StubModel(lambda messages: ["So \\(a\\,b\\) is\n\n", "\\[\\frac{a}{b}\\]\n", "and <img src=x onerror='window.hit=1'> ", "![x](http://127.0.0.1:9/x.png)\n"])`;
const MAGIC = '%%chat model\nWhat is {n}?';
/** What ipywidgets says in the console of a view whose kernel has ended. */
const NO_MODEL = /^console: .*widget model not found/i;
const lab = useLab({ notebooks: { 'chat.ipynb': [SETUP, 'chat'], 'magic.ipynb': [SETUP, `n = 42\n${FORMULA}`, MAGIC], 'ask.ipynb': [SETUP, 'model = StubModel()\ntalk = gp.llm.chat(model)', '%%cuda\n__global__ void f(int* x) { x[0] = wrong; }', 'y = {1: 2}'] }, known: [NO_MODEL] });
const panel = (): Locator => lab.notebook.page.locator('.gk-chat');

async function ask(text: string): Promise<void> {
  const field = panel().getByRole('textbox', { name: 'Message' });
  await field.fill(text);
  await field.press('Enter');
}

test('what is asked in the page streams in, token by token', async () => {
  await lab.open('chat.ipynb', SETUP_AT, CHAT_AT);
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  await ask('hello');
  await expect(panel()).toHaveAttribute('data-state', 'answering');
  await lab.notebook.execute('model.release(4)');
  await expect(panel().locator('.gk-markdown strong')).toHaveText('hello');
  await lab.notebook.execute('model.release(53)');
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  expect(await lab.notebook.execute('print([(one.role, len(one.content)) for one in chat.messages])')).toMatch(/user.*assistant/);
});

test('code goes into a new cell below', async () => {
  await panel().getByRole('button', { name: 'Into a cell' }).click();
  await expect(lab.cells.all()).toHaveCount(3);
  expect(await lab.cells.source(2)).toBe('%%cuda\n__global__ void f() {}');
});

test('an answer begins and stops while a cell is busy, within one step', async () => {
  test.skip(!(await lab.notebook.subshells()), 'this kernel has no subshells');
  await lab.notebook.keepBusy();
  await ask('while busy');
  await expect(panel()).toHaveAttribute('data-state', 'answering');
  await panel().getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  expect(await lab.notebook.busy()).toBe(true);
  await lab.notebook.finish();
  expect(await lab.notebook.execute('print(chat.messages[-1].finish_reason, model.generations[-1].count)')).toBe('cancelled 0\n');
});

test('a question that is edited begins a branch, and the other can be gone back to', async () => {
  await lab.notebook.execute('model.release(1000)');
  await panel().getByRole('button', { name: 'Edit' }).first().click();
  await panel().getByRole('textbox', { name: 'Edit the question' }).fill('goodbye');
  await panel().getByRole('textbox', { name: 'Edit the question' }).press('Enter');
  await expect(panel().locator('.gk-markdown strong')).toHaveText(['goodbye']);
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  await panel().getByRole('button', { name: 'Version before' }).first().click();
  await expect(panel().locator('.gk-question')).toHaveText(['hello', 'while busy']);
});

test('after a reload the conversation is there again', async () => {
  await lab.notebook.save();
  await lab.notebook.page.reload();
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  await expect(panel().locator('.gk-question')).toHaveText(['hello', 'while busy']);
});

test('an answer in its course stops within one step', async () => {
  await lab.notebook.execute('while model._gate.acquire(blocking=False): pass');
  await ask('stop amid');
  await expect(panel()).toHaveAttribute('data-state', 'answering');
  await lab.notebook.execute('model.release(3)');
  await expect(panel().locator('.gk-said').last().locator('.gk-token')).toHaveCount(3);
  await panel().getByRole('button', { name: 'Stop', exact: true }).click();
  await lab.notebook.execute('model.release(20)');
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  expect(await lab.notebook.execute('print(chat.messages[-1].finish_reason, model.generations[-1].count <= 4)')).toBe('cancelled True\n');
});

test('Ctrl+S in the box saves the notebook', async () => {
  const field = panel().getByRole('textbox', { name: 'Message' });
  await field.fill('a draft');
  const saved = lab.notebook.page.waitForRequest((one) => one.method() === 'PUT' && one.url().includes('/api/contents/chat.ipynb'));
  await field.press('Control+s');
  await saved;
  await expect(field).toHaveValue('a draft');
});

test('after a restart the box says that the kernel has ended, and keeps the text', async () => {
  await lab.notebook.page.evaluate(async () => {
    const { session } = window.jupyterapp.shell.currentWidget.sessionContext as unknown as { session: { kernel: { restart(): Promise<void> } } };
    await session.kernel.restart();
  });
  await expect(panel().locator('.gk-chat-status')).toContainText('The kernel of this chat has ended');
  const field = panel().getByRole('textbox', { name: 'Message' });
  await field.fill('still here');
  await field.press('Enter');
  await expect(field).toHaveValue('still here');
});

test('%%chat shows its chat once, with formulas set, and the saved notebook has it as it was', async () => {
  const { page } = lab.notebook;
  const requests: string[] = [];
  page.on('request', (request) => /:9\/|\/x$/.test(request.url()) && requests.push(request.url()));
  await lab.open('magic.ipynb', 0, 1, 2);
  await expect(panel()).toHaveCount(1);
  await expect(panel().locator('.gk-question')).toHaveText('What is 42?');
  await expect(lab.cells.at(2).locator('.jp-OutputArea-output')).toHaveCount(1);
  await expect(panel().locator('.gk-math mjx-container')).toHaveCount(2);
  // What is said in the page afterwards is saved, too.
  await ask('And 43?');
  await expect(panel().locator('.gk-question')).toHaveText(['What is 42?', 'And 43?']);
  await expect(panel()).toHaveAttribute('data-state', 'ready');
  await lab.notebook.save();
  const { cells } = JSON.parse(lab.server.readNotebook('magic.ipynb')) as { cells: { outputs: { data: Record<string, string | string[]> }[] }[] };
  const [output, ...others] = cells[2]!.outputs;
  expect(others).toEqual([]);
  const markdown = [output!.data['text/markdown'] ?? ''].flat().join('');
  expect(markdown).toContain('**You:** What is 42?');
  expect(markdown).toContain('**You:** And 43?');
  expect(markdown).not.toContain('<img');
  await page.goto('about:blank');
  await lab.server.endKernels();
  await lab.open('magic.ipynb');
  const cell = lab.cells.at(2);
  await expect(cell.locator('.gk-saved')).toBeVisible();
  await expect(cell.locator('.gk-saved-note')).toContainText('As it was when the notebook was saved');
  await expect(cell.locator('.gk-saved')).toContainText('And 43?');
  await expect(cell.locator('.gk-saved mjx-container')).toHaveCount(4);
  await expect(cell).not.toContainText(/Error displaying widget|Loading widget/);
  expect(await page.evaluate(() => 'hit' in window)).toBe(false);
  expect(requests).toEqual([]);
});

test('a cell that failed asks about its error, and any cell is explained, by the chat of the notebook', async () => {
  const { page } = lab.notebook;
  await lab.open('ask.ipynb', 0, 1);
  await expect(page.locator('.gk-ask-error')).toHaveCount(0);
  await lab.notebook.beginCell(2);
  await lab.cells.at(2).getByRole('button', { name: 'Ask about this error' }).click();
  await expect(lab.cells.all()).toHaveCount(5);
  await expect(panel().locator('.gk-question')).toContainText('__global__ void f(int* x) { x[0] = wrong; }');
  await expect(panel().locator('.gk-question')).toContainText(/The error:[\s\S]*wrong/);
  await expect(panel().locator('.gk-markdown')).toContainText('echo 1');
  await lab.cells.at(4).locator('.cm-content').click();
  await lab.notebook.command('pygpukit:explain-cell');
  await expect(lab.cells.all()).toHaveCount(6);
  expect(await lab.cells.source(5)).toContain('Explain in a few sentences what this Python code does.\n\n```python\ny = {1: 2}\n```');
  await expect(panel().last().locator('.gk-question').last()).toContainText('y = {1: 2}');
  await expect(panel().last()).toHaveAttribute('data-state', 'ready');
});
