// One thing that compiler or checker says about a cell, as the kernel sends it, and which characters it is about.

import type { JSONValue } from '@lumino/coreutils';

export interface Finding {
  /** From 1, as the user counts the cell's lines. */
  readonly line: number;
  /** From 1, in characters; 0 where it is not known. */
  readonly column: number;
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
}

/** The findings among what the kernel sent; whatever has another shape is left out. */
export function findings(data: JSONValue | undefined): Finding[] {
  if (!Array.isArray(data)) return [];
  return data.flatMap((one) => {
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return [];
    const { line, column, severity, message } = one;
    if (!isCount(line) || !isCount(column) || typeof message !== 'string') return [];
    return [{ line, column, severity: severity === 'error' || severity === 'warning' ? severity : 'info', message }];
  });
}

function isCount(value: JSONValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Offsets in the line: of the word at the column, of one character where there is none, of the whole line without a column. */
export function range(text: string, column: number): { from: number; to: number } {
  const characters = [...text];
  if (column < 1 || column > characters.length) {
    const from = text.length - text.trimStart().length;
    return { from: from === text.length ? 0 : from, to: text.trimEnd().length || text.length };
  }
  const from = characters.slice(0, column - 1).join('').length; // the editor counts UTF-16 units
  const word = /^(?:[A-Za-z_]\w*|\d[\w.]*)/.exec(text.slice(from));
  return { from, to: from + (word?.[0] ?? characters[column - 1] ?? '').length };
}
