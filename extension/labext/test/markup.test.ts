// The one list of markup: what it refuses is neither saved nor shown, and the pictures of the project's own notebook are on it whole.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { draws, drawsOrStyles } from '../src/markup.js';

const NOTEBOOK = join(import.meta.dirname, '../../../notebooks/06_dashboards.ipynb');
const TAG = /<(\w+)((?:\s+[\w-]+="[^"]*")*)\s*\/?>/g;
const ATTRIBUTE = /([\w-]+)="([^"]*)"/g;

interface Cell {
  readonly outputs?: readonly { readonly data?: Readonly<Record<string, string | string[]>> }[];
}

/** Every attribute of the pictures that the project's notebook was saved with: element, name, value. */
function attributes(): [string, string, string][] {
  const { cells } = JSON.parse(readFileSync(NOTEBOOK, 'utf8')) as { cells: Cell[] };
  const pictures = cells.flatMap(({ outputs }) => outputs ?? []).map(({ data }) => [data?.['text/html'] ?? ''].flat().join(''));
  const tags = pictures.filter((html) => html.includes('<svg')).flatMap((html) => [...html.matchAll(TAG)]);
  return tags.flatMap(([, element = '', all = '']) => [...all.matchAll(ATTRIBUTE)].map(([, name = '', value = '']): [string, string, string] => [element, name, value]));
}

test('the pictures of views are on the list', () => {
  const named = attributes();
  expect(new Set(named.map(([element]) => element))).toEqual(new Set(['div', 'svg', 'rect', 'text', 'th', 'td']));
  expect(named.filter((one) => !drawsOrStyles(...one))).toEqual([]);
  expect(new Set(named.filter((one) => !draws(...one)).map(([, name]) => name))).toEqual(new Set(['class', 'style']));
});

test.each([
  ['rect', 'onclick', 'hit()'],
  ['rect', 'fill', 'url(/hit)'],
  ['rect', 'fill', 'u\\72l(/hit)'],
  ['div', 'style', 'background: url(/hit)'],
  ['div', 'style', 'background-image: none'],
  ['div', 'id', 'main'],
  ['div', 'data-commandlinker-command', 'hit'],
  ['text', 'href', '/hit'],
  ['svg', 'onload', 'hit()'],
  ['img', 'src', 'http://127.0.0.1:9/x.png'],
  ['img', 'src', 'data:image/svg+xml;base64,AAAA'],
  ['img', 'srcset', 'data:image/png;base64,AAAA 1x'],
  ['img', 'onerror', 'hit'],
  ['audio', 'src', 'data:text/html;base64,AAAA'],
  ['audio', 'autoplay', ''],
  ['path', 'style', 'fill: red'],
  ['div', 'style', 'display: none'],
  ['constructor', 'name', 'x'],
  // Of an element that it does not draw, or with a value that could refer to something.
  ['rect', 'opacity', 'var(--x)'],
  ['svg', 'width', 'calc(1px)'],
  ['svg', 'role', 'img"'],
  ['td', 'width', '1'],
  ['div', 'role', 'button'],
  ['div', 'aria-label', 'Cell'],
  ['rect', 'font-size', '12'],
  ['text', 'opacity', '0'],
  // As something else of the page.
  ['div', 'class', 'jp-Button'],
  ['div', 'class', 'gk-live jp-Button'],
  ['div', 'style', 'position: fixed; top: 0'],
  ['div', 'style', 'font: 13px "Arial"'],
  ['div', 'style', ''],
  ['div', 'style', 'padding'],
  ['div', 'style', 'padding: 1px: 2px'],
])('<%s %s="%s"> is neither saved nor shown', (...one) => {
  expect([draws(...one), drawsOrStyles(...one)]).toEqual([false, false]);
});

test('what styles a picture is saved, and shown nowhere', () => {
  for (const [name, value] of [['class', 'gk-live'], ['style', 'font: 13px system-ui, sans-serif; max-width: 640px']] as const) {
    expect([draws('div', name, value), drawsOrStyles('div', name, value)]).toEqual([false, true]);
  }
});
