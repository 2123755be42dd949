import { expect, test } from 'vitest';
import { Blocks } from '../src/chat/blocks.js';

const cut = (pieces: Iterable<string>): Blocks => {
  const blocks = new Blocks();
  for (const piece of pieces) blocks.push(piece);
  return blocks;
};

const SAMPLE = 'Hello *there*.\n\nSecond\nline.\n\n- one\n  - nested\n- two\n\n```python\na = 1\n\nb = 2\n```\nAfter.\n\n~~~\n```\n~~~\n1. x\n2. y\n\n| a | b |\n|---|---|\n| 1 | 2 |\n';

test('paragraphs, items, code and tables are blocks', () => {
  const texts = cut([SAMPLE]).all.map(({ text }) => text);
  expect(texts).toEqual([
    'Hello *there*.\n\n',
    'Second\nline.\n\n',
    '- one\n  - nested\n',
    '- two\n\n',
    '```python\na = 1\n\nb = 2\n```\n',
    'After.\n\n',
    '~~~\n```\n~~~\n',
    '1. x\n',
    '2. y\n\n',
    '| a | b |\n|---|---|\n| 1 | 2 |\n',
  ]);
  const code = cut([SAMPLE]).all.filter(({ kind }) => kind === 'code');
  expect(code.map(({ language }) => language)).toEqual(['python', '']);
  expect(code.map(Blocks.codeOf)).toEqual(['a = 1\n\nb = 2', '```']);
});

test('nothing is lost, and the blocks are the same however the text is cut', () => {
  const whole = cut([SAMPLE]).all;
  expect(cut(SAMPLE).all).toEqual(whole);
  let seed = 1;
  for (let round = 0; round < 200; round++) {
    const pieces: string[] = [];
    for (let at = 0; at < SAMPLE.length; ) {
      seed = (seed * 48271) % 2147483647;
      const size = 1 + (seed % 9);
      pieces.push(SAMPLE.slice(at, at + size));
      at += size;
    }
    const blocks = cut(pieces);
    expect(blocks.all).toEqual(whole);
    expect(blocks.all.map(({ text }) => text).join('')).toBe(SAMPLE);
  }
});

test('a block that is closed is never touched again', () => {
  const blocks = new Blocks();
  let closed: string[] = [];
  for (const letter of SAMPLE.repeat(20)) {
    const first = blocks.push(letter);
    expect(first).toBeGreaterThanOrEqual(closed.length - 1);
    const now = blocks.all.slice(0, -1).map(({ text }) => text);
    expect(now.slice(0, closed.length - 1)).toEqual(closed.slice(0, -1));
    closed = now;
  }
});

test('code that is not closed yet is shown as far as it has come', () => {
  expect(Blocks.codeOf(cut(['```js\nlet a;\n', 'let b']).all[0]!)).toBe('let a;\nlet b');
  expect(Blocks.codeOf(cut(['```js\nlet a;\n``']).all[0]!)).toBe('let a;');
});
