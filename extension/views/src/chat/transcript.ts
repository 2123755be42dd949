// A chat as a notebook was saved with it: Markdown as elements, with colours and formulas, and nothing to press.

import { el } from '../dom.js';
import { Blocks } from './blocks.js';
import { CodeText } from './code.js';
import { render } from './markdown.js';

const MAX_BLOCKS = 5000;

/** The elements of a transcript; it may come from anybody. */
export function transcript(markdown: string): HTMLElement {
  const blocks = new Blocks();
  blocks.push(ourCode(markdown));
  const whole = el('div', 'gk-markdown');
  for (const block of blocks.all.slice(0, MAX_BLOCKS)) {
    if (block.kind === 'text') {
      whole.append(render(block.text));
      continue;
    }
    const code = new CodeText(block.language);
    code.push(block.text);
    code.finish();
    whole.append(el('pre', '', code.element));
  }
  return whole;
}

/** Code that the kernel's side wrote as HTML, so that no page takes it for markup, as Markdown again. */
function ourCode(markdown: string): string {
  const plain = (text: string): string => text.replace(/&#(\d{1,3});/g, (_, code: string) => String.fromCharCode(Number(code)));
  const longest = (text: string, mark: string): number => Math.max(0, ...[...text.matchAll(mark === '~' ? /~+/g : /`+/g)].map(([run]) => run.length));
  return markdown
    .replace(/^([ \t]*)<pre><code>([^<]*)<\/code><\/pre>$/gm, (_, indent: string, code: string) => {
      const text = plain(code);
      const fence = '~'.repeat(Math.max(3, longest(text, '~') + 1));
      return `${indent}${fence}\n${text.replace(/\n$/, '')}\n${indent}${fence}`;
    })
    .replace(/<code>([^<\n]*)<\/code>/g, (_, code: string) => {
      const text = plain(code);
      const ticks = '`'.repeat(longest(text, '`') + 1);
      return `${ticks}${text}${ticks}`;
    });
}
