// The code of one block as it grows: whole lines are coloured once, the open one is text.

import { el } from '../dom.js';
import { Colours } from './colour.js';

const FENCE = /^\s*(?:`{3,}|~{3,})\s*$/;
/** Of a line that may yet be the closing fence nothing is shown. */
const MAYBE_FENCE = /^\s*[`~]*$/;

export class CodeText {
  readonly element = el('code');
  private readonly open = document.createTextNode('');
  private readonly colours: Colours;
  /** The line that is not whole yet, from its beginning; the first is the opening fence. */
  private line = '';
  private lines = 0;
  private held: string | null = null;

  constructor(language: string) {
    this.colours = new Colours(language);
    this.element.append(this.open);
  }

  /** Takes what was added to the block's source. */
  push(text: string): void {
    const lines = (this.line + text).split('\n');
    this.line = lines.pop() ?? '';
    for (const line of lines) this.add(line);
    const shown = this.lines === 0 || MAYBE_FENCE.test(this.line) ? '' : this.line;
    this.open.data = shown && this.lines > 1 ? `\n${shown}` : shown;
  }

  /** No more comes: what is open is shown, less the closing fence. */
  finish(): void {
    const { line } = this;
    this.line = '';
    this.open.data = '';
    if (this.lines > 0 && line !== '' && !FENCE.test(line)) this.add(line);
  }

  private add(line: string): void {
    if (this.held !== null) this.show(this.held); // more follows, so it was no closing fence
    this.held = null;
    if (this.lines === 0) this.lines = 1;
    else if (FENCE.test(line)) this.held = line;
    else this.show(line);
  }

  private show(line: string): void {
    const before = this.lines++ > 1 ? '\n' : '';
    const pieces = this.colours.line(line).map(([text, kind]) => (kind ? el('span', `gk-c-${kind}`, text) : text));
    if (before || pieces.length > 0) this.open.before(before, ...pieces);
  }
}
