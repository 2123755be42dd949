// Formulas in Markdown: kept as they were written, for whoever can set them.

import type { MarkedExtension, Tokens } from 'marked';

const INLINE = /^(?:\$\$[^$]{1,2000}?\$\$|\\\[[\s\S]{1,2000}?\\\]|\\\([\s\S]{1,500}?\\\)|\$(?![\s\d.,]*\s)(?!\s)(?:\\[\s\S]|[^$\n\\]){1,500}?(?<!\s)\$(?!\d))/;
const BLOCK = /^ {0,3}(\$\$[\s\S]{1,4000}?\$\$|\\\[[\s\S]{1,4000}?\\\])[ \t]*(?:\n|$)/;
/** What would do more than draw, in a typesetter. */
const ACTING = /\\(?=(?:href|url|require|style|class|cssId|data|html\w*)\b)/g;

/** Formulas as <var>, which no Markdown makes otherwise. */
export function math(escape: (text: string) => string): MarkedExtension {
  const renderer = ({ text }: Tokens.Generic): string => `<var>${escape(String(text).replace(ACTING, '\\ '))}</var>`;
  return {
    extensions: [
      {
        name: 'formula',
        level: 'inline',
        start: (source) => /\$|\\[([]/.exec(source)?.index,
        tokenizer: (source) => {
          const match = INLINE.exec(source)?.[0];
          return match === undefined ? undefined : { type: 'formula', raw: match, text: match };
        },
        renderer,
      },
      {
        name: 'formulas',
        level: 'block',
        start: (source) => /\n {0,3}(?:\$\$|\\\[)/.exec(source)?.index,
        tokenizer: (source) => {
          const match = BLOCK.exec(source);
          return match?.[1] === undefined ? undefined : { type: 'formulas', raw: match[0], text: match[1] };
        },
        renderer: (token) => `<p>${renderer(token)}</p>`,
      },
    ],
  };
}

/** Asks whoever can to set the formulas of an element, each once: the lab extension, where it is. Elsewhere they stay text. */
export function typeset(element: HTMLElement): void {
  if (!element.isConnected) return; // its sizes are not known yet: who puts it into the page asks again
  for (const formula of element.querySelectorAll('.gk-math:not(.gk-set)')) {
    formula.classList.add('gk-set');
    formula.dispatchEvent(new CustomEvent('pygpukit:typeset', { bubbles: true, composed: true }));
  }
}
