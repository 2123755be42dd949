// What Markdown may cost: a parser's time grows with the square or the cube of some texts, and its stack with their depth. Beyond this a block is shown as text.

export const MAX_CHARACTERS = 20_000;
export const MAX_LINKS = 100;
export const MAX_MARKS = 1500;
export const MAX_INDENT = 60;
export const MAX_DEPTH = 30;

const LINK = /\]\(|\[|!\[/g;
const MARK = /[*_~`<|]/g;
const MARGIN = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*/gm;

const count = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;

/** Whether a block is parsed within some milliseconds. */
export function isBounded(text: string): boolean {
  if (text.length > MAX_CHARACTERS || count(text, LINK) > MAX_LINKS || count(text, MARK) > MAX_MARKS) return false;
  for (const [margin] of text.matchAll(MARGIN)) {
    if (margin.length <= MAX_DEPTH) continue;
    if (margin.replaceAll('\t', '    ').length > MAX_INDENT || count(margin, /[-*+>.)]/g) > MAX_DEPTH) return false;
  }
  return true;
}
