// A chat in JupyterLab beside a stub model that gives 200 tokens a second: how long after the model gave it a token is in the page.

import { join } from 'node:path';
import { test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';
import { percentile, report } from './figures.ts';

const TESTS = join(import.meta.dirname, '../../../tests/support');
const [TOKENS, PER_S, ASKS, LAST] = [4000, 200, 10, 500];
/** `tokenTimes`: when the model gave each token of the answer that comes, as the page counts: ms since 1970. */
const SETUP = `
import sys, threading, time
sys.path.insert(0, ${JSON.stringify(TESTS)})
import pygpukit as gp
from stub_model import StubModel
%load_ext pygpukit
model = StubModel(lambda messages: ["word "] * int(messages[-1]["content"]), gated=True)
chat = gp.llm.chat(model)
given = []
def pace(count):
    given.clear()
    at = time.perf_counter()
    for _ in range(count):
        given.append(1000 * time.time())
        model.release()
        at += 1 / ${PER_S}
        time.sleep(max(0, at - time.perf_counter()))
    model.release()  # for the end
def say(count):
    chat.ask(str(count), wait=False)
    time.sleep(0.3)  # the question is in the page
    pace(count)
    chat.wait()
`;

/** When the page had how many tokens of the answer that comes next, until it has all. */
async function arrivals(notebook: NotebookPage, count: number): Promise<number[]> {
  const seen = notebook.page.locator('.gk-chat .gk-log').evaluate(async (log, wanted) => {
    const before = log.querySelectorAll('.gk-token').length;
    const at: number[] = [];
    const lists = log.getElementsByClassName('gk-token-list');
    await new Promise<void>((done) => {
      new MutationObserver((_records, observer) => {
        const shown = [...lists].reduce((sum, list) => sum + list.childElementCount, 0) - before;
        while (at.length < Math.min(shown, wanted)) at.push(performance.timeOrigin + performance.now());
        if (at.length < wanted) return;
        observer.disconnect();
        done();
      }).observe(log, { childList: true, subtree: true });
    });
    return at;
  }, count);
  await notebook.execute(`say(${count})`);
  return seen;
}

test('the tokens of a chat', async ({ browser }) => {
  const server = await LabServer.start('JupyterLab Light');
  try {
    server.putNotebook('chat.ipynb', [SETUP, 'chat']);
    const notebook = new NotebookPage(await browser.newPage());
    await notebook.open(server.notebookUrl('chat.ipynb'));
    await notebook.runAll();
    await notebook.page.locator('.gk-chat[data-state="ready"]').waitFor();
    const lags = async (count: number): Promise<number[]> => {
      const at = await arrivals(notebook, count);
      const tokenTimes = JSON.parse(await notebook.execute('import json; print(json.dumps(given))')) as number[];
      return at.map((arrived, i) => arrived - (tokenTimes[i] ?? NaN));
    };
    const first: number[] = [];
    for (let i = 0; i < ASKS; i++) first.push((await lags(3))[0] ?? NaN);
    report('first_token', { asks: ASKS, p50_ms: percentile(first, 0.5), max_ms: percentile(first, 1) });
    const all = await lags(TOKENS);
    const of = (some: readonly number[]): Record<string, number> => ({ p50_ms: percentile(some, 0.5), p95_ms: percentile(some, 0.95), max_ms: percentile(some, 1) });
    report('first_tokens_of_many', { tokens: LAST, per_s: PER_S, ...of(all.slice(0, LAST)) });
    report('last_tokens_of_many', { tokens: LAST, of: TOKENS, per_s: PER_S, ...of(all.slice(-LAST)) });
  } finally {
    await server.stop();
  }
});
