// Which words are offered where.

import { expect, it } from 'vitest';
import { completions } from '../src/completion.js';

const offered = (text: string): string[] => completions(text, text.length).items.map(({ label }) => label);

it('offers the words that begin as what is written', () => {
  expect(offered('%%cuda\n__syncth')).toEqual(['__syncthreads', '__syncthreads_count', '__syncthreads_and', '__syncthreads_or']);
  expect(completions('%%cuda\nint a = threadI', 22).start).toBe(15);
  expect(offered('%%cuda\nthreadI')).toEqual(['threadIdx']);
});

it('explains them', () => {
  const [item] = completions('%%cuda\n__ballot', 15).items;
  expect(item?.documentation).toContain('unsigned __ballot_sync(unsigned mask, int predicate)');
});

it('offers nothing on the magic line, behind a dot, without a letter', () => {
  for (const text of ['%%cuda thr', '%%cuda\nthreadIdx.t', '%%cuda\n', '%%cuda\nint a = ', '\n%%cuda fl']) {
    expect(offered(text), text).toEqual([]);
  }
});
