// Markdown that grows: cut into blocks that never change again and one that is open, so that a token costs the same however long the text is.

export interface Block {
  /** The source: what was added to it, in order. */
  text: string;
  readonly kind: 'text' | 'code';
  /** Of code: the word behind the fence. */
  readonly language: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
/** An item at the margin begins a block of its own, so that a long list is no long block. */
const ITEM = /^(?:[-*+]|\d{1,9}[.)])\s+\S/;

/** A display formula of several lines is one block, if it ends within so many. */
const MAX_FORMULA_LINES = 40;

/** Takes text as it comes and keeps the blocks; all but the last are closed. */
export class Blocks {
  readonly all: Block[] = [];
  private line = '';
  private fence = '';
  private blank = false;
  /** Lines of the display formula that is open; 0 where none is. */
  private formula = 0;

  /** Adds text; the number of the first block that is new or changed. */
  push(text: string): number {
    const first = Math.max(0, this.all.length - 1);
    let at = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
      this.add(text.slice(at, end + 1));
      this.endLine();
      at = end + 1;
    }
    if (at < text.length) this.add(text.slice(at));
    return first;
  }

  /** Code is shown without its fences; of a line that may yet be its closing fence nothing is shown. */
  static codeOf({ text }: Block): string {
    const lines = text.split('\n');
    const marker = FENCE.exec(lines[0] ?? '')?.[1] ?? '```';
    const last = lines.length > 1 ? lines.findLastIndex((line) => line.trim() !== '') : 0;
    const closing = last > 0 && /^[`~]+$/.test((lines[last] ?? '').trim()) && marker.startsWith((lines[last] ?? '').trim().charAt(0));
    return lines.slice(1, closing ? last : undefined).join('\n');
  }

  private add(text: string): void {
    const open = this.all.at(-1);
    // What a line is shows only at its end, but for what follows an empty line: that begins a block.
    if (!open || (this.line === '' && this.blank && this.fence === '')) {
      this.all.push({ text, kind: 'text', language: '' });
      this.blank = false;
    } else open.text += text;
    this.line += text;
  }

  private endLine(): void {
    const line = this.line.trimEnd();
    const whole = this.line;
    this.line = '';
    const match = FENCE.exec(line);
    if (this.fence !== '') {
      if (match && match[2] === '' && match[1]?.startsWith(this.fence)) {
        this.fence = '';
        this.blank = true;
      }
    } else if (match?.[1]) {
      this.fence = match[1];
      this.cut(whole, { kind: 'code', language: match[2] ?? '' });
    } else if (this.inFormula(line.trim())) return;
    else if (line === '') this.blank = true;
    else if (ITEM.test(line)) this.cut(whole, { kind: 'text', language: '' });
  }

  private inFormula(line: string): boolean {
    if (this.formula > 0) {
      const ends = line.endsWith('\\]') || line.endsWith('$$') || this.formula >= MAX_FORMULA_LINES;
      this.formula = ends ? 0 : this.formula + 1;
      return true;
    }
    if (line === '\\[' || line === '$$') this.formula = 1;
    return this.formula > 0;
  }

  /** The last line begins a block of its own. */
  private cut(line: string, as: Omit<Block, 'text'>): void {
    const open = this.all.at(-1);
    if (!open) return;
    const before = open.text.slice(0, open.text.length - line.length);
    if (before === '') this.all.pop();
    else open.text = before;
    this.all.push({ text: line, ...as });
  }
}
