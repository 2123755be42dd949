// Which outputs are views of ours, and which of them stand in the page without their view.

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

export const WIDGET = 'application/vnd.jupyter.widget-view+json';
export const HTML = 'text/html';
const VIEW = /^(Memory|Scheduler|Device|Cells)Widget\(\)$/;
/** What ipywidgets writes where a view is to be: before it has looked for the model, and when there is none. */
const LOADING = 'Loading widget...';
const NOT_FOUND = 'Error displaying widget: model not found';

/** What an output's place in the page shows. */
export interface Shown {
  /** What it is drawn from. */
  readonly mimeType: string;
  /** Whether there are elements, and not only words. */
  readonly drawn: boolean;
  readonly words: string;
}

/** The HTML that a view of ours was saved with. */
export function savedHtml(data: ReadonlyPartialJSONObject): string | undefined {
  const { [HTML]: html, 'text/plain': plain } = data;
  return WIDGET in data && typeof html === 'string' && typeof plain === 'string' && VIEW.test(plain) ? html : undefined;
}

/**
 * Whether the saved picture is to be shown. `expected`: whether a kernel may still bring the view. The lab draws the HTML of an
 * output that is not trusted itself, without its picture.
 */
export function lacksView({ mimeType, drawn, words }: Shown, trusted: boolean, expected: boolean): boolean {
  if (mimeType === HTML) return !trusted && (drawn || words !== '');
  return mimeType === WIDGET && !drawn && (words === NOT_FOUND || (words === LOADING && !expected));
}
