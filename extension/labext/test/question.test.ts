import { expect, test } from 'vitest';
import { MAX_CODE, MAX_ERROR, questionAbout } from '../src/question.js';

test('a cell is asked about by its code, without its magic, with braces as they are', () => {
  expect(questionAbout('x = {1}\n', '')).toBe('%%chat --new --plain\nExplain in a few sentences what this Python code does.\n\n```python\nx = {1}\n```');
  const asked = questionAbout('%%cuda --check\n__global__ void f() {}', '\u001b[31mcell 3, line 2\u001b[0m: error');
  expect(asked).toContain('```cuda\n__global__ void f() {}\n```');
  expect(asked).toContain('The error:\n\ncell 3, line 2: error');
  expect(asked).not.toContain('%%cuda');
});

test('the fence is longer than those in the code, and the length is bounded', () => {
  expect(questionAbout('s = "```"', '')).toContain('````python\ns = "```"\n````');
  const asked = questionAbout('a'.repeat(1e6), 'b'.repeat(1e6));
  expect(asked.length).toBeLessThan(MAX_CODE + MAX_ERROR + 400);
});
