// The chat, light and dark: docs/images/chat-LOOK.png.

import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { mount, sendMessage } from '../support/plain-page.ts';

const IMAGES = join(import.meta.dirname, '../../../docs/images');
const ANSWER = ['A kernel **adds** two vectors, ', 'one element a thread:\n\n', '```cuda\n__global__ void add(const float* x, const float* y, float* z, int n) {\n', '  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) z[i] = x[i] + y[i];\n}\n```\n', '1. each thread finds its `i`,\n', '2. threads beyond the end do nothing.\n'];
const TOKENS = [['The', 0.55], [' capital', 0.98], [' of', 0.99], [' France', 0.99], [' is', 0.96], [' Paris', 0.95], ['.', 0.9]] as const;

for (const look of ['light', 'dark'] as const) {
  test(`chat, ${look}`, async ({ page }) => {
    await page.setViewportSize({ width: 800, height: 900 });
    await page.emulateMedia({ colorScheme: look });
    await mount(page, 'chat');
    await page.evaluate((dark) => (document.body.style.background = dark ? '#111' : '#fff'), look === 'dark');
    const figures = { rate: 29.4, first: 0.62, tokens: 86, used: 143, context: 4096, bytes: 6.6e6 };
    const end = { reason: 'stop', ended: '', error: '', stage: '', note: '', figures };
    const first = TOKENS.map(([text, p], i) => [i, text, '', Math.log(p), [[text, Math.log(p)], [' L', Math.log((1 - p) / 3)]]]);
    const second = ANSWER.map((text, i) => [i, text, i === 0 ? 'They want a short example.' : '', -0.1, []]);
    const messages = [
      { role: 'user', number: 0, places: [0], text: 'What is the capital of France?' },
      { role: 'assistant', number: 1, places: [1], rows: first, ...end },
      { role: 'user', number: 2, places: [2, 4], text: 'Show me a CUDA kernel that adds two vectors.' },
      { role: 'assistant', number: 3, places: [3], rows: second, ...end },
    ];
    const settings = { max_new_tokens: null, temperature: null, top_p: null };
    const chats = ['What is the capital of France?'];
    await sendMessage(page, { type: 'state', model: 'smollm2-135m-instruct', system: '', busy: false, settings, messages, chats, chat: 0 });
    await expect(page.locator('.gk-markdown li')).toHaveCount(2);
    await page.getByRole('button', { name: 'Tokens' }).first().click();
    await page.locator('.gk-token').first().hover();
    await page.evaluate(() => ((document.querySelector('.gk-log') as HTMLElement).style.maxHeight = 'none'));
    await page.locator('.gk-panel').screenshot({ path: join(IMAGES, `chat-${look}.png`) });
  });
}
