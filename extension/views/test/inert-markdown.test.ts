import { expect, test } from 'vitest';
import { isBounded } from '../src/chat/bounds.js';
import { isInertMarkdown } from '../src/chat/markdown.js';

test('what a chat is saved as is inert, and what would act is not', () => {
  for (const text of ['**You:** a < b\n\n**Model:** `x` &lt;img> !&#91;x](http://a)', '<pre><code>#include &#60;x&#62;\n\nf(&#91;1]);\n</code></pre>\n', 'a <code>v&#60;int&#62;</code> b', '[x](https://a.b) $x < y$', '```\n<img src=x>\n```'])
    expect(isInertMarkdown(text), text).toBe(true);
  for (const text of ['<img src=x onerror=hit()>', 'a <b onclick=hit()>x</b>', '![x](http://a/b.png)', '![x][y]\n\n[y]: http://a/b.png', '[x](javascript:hit())', '[z]: javascript:hit()\n\n[a][z]', '<pre onclick=hit()>\n</pre>', '<pre><code><img src=x></code></pre>', '- a\n  - <script>hit()</script>'])
    expect(isInertMarkdown(text), text).toBe(false);
});

test('usual Markdown is parsed, and what would take long is not', () => {
  expect(isBounded('# A\n\n- **one** [x](https://a.b)\n  - two\n    - three\n\n| a | b |\n|---|---|\n')).toBe(true);
  for (const text of ['[a]('.repeat(101), '*a_'.repeat(751), 'a'.repeat(20_001), `${' '.repeat(62)}- a`, '> '.repeat(31)]) expect(isBounded(text), text.slice(0, 9)).toBe(false);
});
