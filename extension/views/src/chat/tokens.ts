// An answer as its tokens, each with its probability and what else could have come.

import { el } from '../dom.js';
import type { TokenRow } from './messages.js';

const percent = (logprob: number): string => `${(100 * Math.exp(logprob)).toFixed(1)} %`;
const visible = (text: string): string => text.replaceAll('\n', '\u21b5').replaceAll('\t', '\u21e5') || '(nothing)';

/** What is said of a token when it is pointed at. */
export function describe([, text, thinking, logprob, top]: TokenRow): string {
  const lines = [`"${visible(thinking || text)}"${logprob === null ? '' : ` ${percent(logprob)}`}`];
  for (const [other, its] of top) lines.push(`${percent(its).padStart(8)}  ${visible(other)}`);
  return lines.join('\n');
}

export class Tokens {
  readonly element = el('div', 'gk-tokens');
  private readonly about = el('pre', 'gk-token-about', 'Point at a token, or go to one with the arrow keys.');
  private readonly list = el('div', 'gk-token-list');
  private readonly rows: TokenRow[] = [];
  private current = 0;

  constructor() {
    this.list.tabIndex = 0;
    this.list.setAttribute('role', 'group');
    this.list.setAttribute('aria-label', 'Tokens of the answer');
    this.about.setAttribute('role', 'status');
    this.element.append(this.list, this.about);
    this.list.addEventListener('mouseover', ({ target }) => {
      const at = target instanceof HTMLElement ? [...this.list.children].indexOf(target) : -1;
      if (at >= 0) this.point(at);
    });
    this.list.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.point(Math.min(Math.max(this.current + step, 0), this.rows.length - 1));
    });
  }

  push(rows: readonly TokenRow[]): void {
    for (const row of rows) {
      const [, text, thinking, logprob] = row;
      const token = el('span', 'gk-token', thinking || text || '\u2205');
      if (logprob !== null) token.style.setProperty('--gk-doubt', String(Math.round(100 * (1 - Math.exp(logprob)))));
      this.rows.push(row);
      this.list.append(token);
    }
  }

  private point(at: number): void {
    const row = this.rows[at];
    if (!row) return;
    this.list.children[this.current]?.classList.remove('gk-pointed');
    this.list.children[at]?.classList.add('gk-pointed');
    this.current = at;
    this.about.textContent = describe(row);
  }
}
