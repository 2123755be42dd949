// Markdown of a model as elements. A model's text is untrusted: markup in it stays text, and only what is on the list comes in.

import DOMPurify from 'dompurify';
import { Marked } from 'marked';

const TAGS = ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a'];

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
const marked = new Marked({
  gfm: true,
  async: false,
  renderer: { html: ({ text }) => escape(text), image: ({ text }) => escape(text), checkbox: ({ checked }) => (checked ? '[x] ' : '[ ] ') },
});

/** The elements of a block. Nothing in them runs, and nothing is fetched before somebody presses a link. */
export function render(markdown: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(markdown) as string, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'start', 'align'],
    ADD_URI_SAFE_ATTR: ['start', 'align'], // no addresses, so not held against what follows
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    if (link.href) link.title = link.href;
  }
  return fragment;
}
