// Markdown of a model as elements. A model's text is untrusted: markup in it stays text, and only what is on the list comes in.

import DOMPurify from 'dompurify';
import { Marked, type Token } from 'marked';
import { el } from '../dom.js';
import { isBounded } from './bounds.js';
import { math } from './math.js';

const TAGS = ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a', 'var'];
const ADDRESS = /^(?:https?|mailto):/i;

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
const marked = new Marked(
  {
    gfm: true,
    async: false,
    renderer: { html: ({ text }) => escape(text), image: ({ text }) => escape(text), checkbox: ({ checked }) => (checked ? '[x] ' : '[ ] ') },
  },
  math(escape),
);

/** The elements of a block. Nothing in them runs, and nothing is fetched before somebody presses a link. What would take long is shown as text. */
export function render(markdown: string): DocumentFragment {
  const html = parse(markdown);
  if (html === null) {
    const plain = document.createDocumentFragment();
    plain.append(el('div', 'gk-plain', markdown));
    return plain;
  }
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'start', 'align'],
    ADD_URI_SAFE_ATTR: ['start', 'align'], // no addresses, so not held against what follows
    ALLOWED_URI_REGEXP: ADDRESS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    if (link.href) link.title = link.href;
  }
  for (const formula of fragment.querySelectorAll('var')) formula.replaceWith(el('span', 'gk-math', formula.textContent ?? ''));
  return fragment;
}

function parse(markdown: string): string | null {
  if (!isBounded(markdown)) return null;
  try {
    return marked.parse(markdown) as string;
  } catch {
    return null; // a parser's fault, as a stack that is full, must not take the answer away
  }
}

/** What the transcript of a chat has of HTML: code that Markdown could not hold. */
const OURS = /^<\/?(?:pre|code)>$/;
const OUR_BLOCK = /^<pre><code>[^<]*<\/code><\/pre>\s*$/;

/** Whether a page that draws this Markdown, and trusts it, runs and fetches nothing by it. */
export function isInertMarkdown(markdown: string): boolean {
  try {
    let inert = true;
    marked.walkTokens(marked.lexer(markdown), (token: Token) => {
      if (token.type === 'html') inert &&= OURS.test(token.raw) || OUR_BLOCK.test(token.raw);
      else if (token.type === 'image') inert = false;
      else if (token.type === 'link' || token.type === 'def') inert &&= ADDRESS.test(String(token['href']));
    });
    return inert;
  } catch {
    return false;
  }
}
