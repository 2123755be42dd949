// The text of one answer as it grows: closed blocks are made once, the open one again as it has grown by a part of itself.

import { el } from '../dom.js';
import { type Block, Blocks } from './blocks.js';
import { CodeText } from './code.js';
import { render } from './markdown.js';
import { typeset } from './math.js';

/** A short block is made anew at each addition; a longer one when it has grown by an eighth, so that its whole cost is in proportion to its length. */
const SHORT = 600;
const GROWN = 1.125;

export interface CodeActions {
  copy(code: string, button: HTMLElement): void;
  insert(code: string, language: string, button: HTMLElement): void;
}

interface Shown {
  readonly node: HTMLElement;
  readonly code: CodeText | null;
  block: Block;
  /** How much of the source is shown, and how much when it was last made whole. */
  length: number;
  built: number;
}

export class AnswerText {
  readonly element = el('div', 'gk-markdown');
  private readonly blocks = new Blocks();
  private readonly shown: Shown[] = [];

  constructor(
    private readonly actions: CodeActions,
    private readonly closed: (text: string) => void,
  ) {}

  push(text: string): void {
    if (text === '') return;
    const before = this.blocks.all.length;
    const first = this.blocks.push(text);
    for (let i = first; i < this.blocks.all.length; i++) this.show(i, i < this.blocks.all.length - 1);
    for (let i = Math.max(0, before - 1); i < this.blocks.all.length - 1; i++) this.closed(this.shown[i]?.node.textContent ?? '');
  }

  /** No more comes. */
  finish(): void {
    const last = this.blocks.all.length - 1;
    if (last < 0) return;
    this.show(last, true);
    this.closed(this.shown[last]?.node.textContent ?? '');
  }

  private show(index: number, whole: boolean): void {
    const block = this.blocks.all[index];
    if (!block) return;
    let shown = this.shown[index];
    if (!shown || shown.block !== block) {
      const built = this.make(block);
      if (shown) shown.node.replaceWith(built.node);
      else this.element.append(built.node);
      shown = this.shown[index] = built;
    }
    const size = block.text.length;
    if (shown.code) {
      shown.code.push(block.text.slice(shown.length));
      if (whole) shown.code.finish();
      shown.length = size;
      return;
    }
    if (whole ? shown.built !== size : shown.length !== size) {
      if (whole || size < shown.length || size < SHORT || size > shown.built * GROWN) {
        shown.node.replaceChildren(render(block.text));
        shown.built = size;
      } else (shown.node.lastElementChild ?? shown.node).append(block.text.slice(shown.length));
      shown.length = size;
    }
    if (whole) typeset(shown.node);
  }

  private make(block: Block): Shown {
    if (block.kind === 'text') return { node: el('div', 'gk-block'), code: null, block, length: 0, built: 0 };
    const code = new CodeText(block.language);
    const [copy, insert] = ['Copy', 'Into a cell'].map((name) => el('button', 'gk-button', name)) as [HTMLButtonElement, HTMLButtonElement];
    copy.addEventListener('click', () => this.actions.copy(Blocks.codeOf(block), copy));
    insert.addEventListener('click', () => this.actions.insert(Blocks.codeOf(block), block.language, insert));
    const pre = el('pre', '', code.element);
    pre.tabIndex = 0;
    const node = el('div', 'gk-code', el('div', 'gk-code-head', el('span', '', block.language || 'code'), copy, insert), pre);
    return { node, code, block, length: 0, built: 0 };
  }
}
