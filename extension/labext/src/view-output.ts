// Which outputs are views of ours, and which of them stand in the page without their view.

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

export const WIDGET = 'application/vnd.jupyter.widget-view+json';
export const HTML = 'text/html';
export const MARKDOWN = 'text/markdown';
/** In files that were saved before outputs had the mark. */
const VIEW = /^(?:(?:Memory|Scheduler|Device|Cells|Chat|Player|Recorder|Spectrogram|Talk)Widget|AudioBuffer)\(/;
const MARK = 'pygpukit';
/** What ipywidgets writes where a view is to be: before it has looked for the model, and when there is none. */
const LOADING = 'Loading widget...';
const NO_MODEL = 'Error displaying widget: model not found';

/** What a view shows where no kernel has it. */
export interface Still {
  readonly kind: typeof HTML | typeof MARKDOWN;
  readonly text: string;
}

/** What an output's place in the page shows. */
export interface Shown {
  /** What it is drawn from. */
  readonly mimeType: string;
  /** Whether there are elements, and not only words. */
  readonly drawn: boolean;
  readonly words: string;
}

/** The still of a bundle of data. */
export function stillIn(data: ReadonlyPartialJSONObject): Still | undefined {
  for (const kind of [MARKDOWN, HTML] as const) {
    const text = data[kind];
    if (typeof text === 'string') return { kind, text };
  }
  return undefined;
}

/** What a view of ours was saved with. */
export function savedStill(data: ReadonlyPartialJSONObject, metadata: ReadonlyPartialJSONObject = {}): Still | undefined {
  const plain = data['text/plain'];
  if (!(WIDGET in data) || !(MARK in metadata || (typeof plain === 'string' && VIEW.test(plain)))) return undefined;
  return stillIn(data);
}

/**
 * Whether the still is to be shown. `expected`: whether a kernel may still bring the view. The lab draws the HTML or the Markdown of an
 * output that is not trusted itself, without its picture.
 */
export function lacksView({ mimeType, drawn, words }: Shown, trusted: boolean, expected: boolean): boolean {
  if (mimeType === HTML || mimeType === MARKDOWN) return !trusted && (drawn || words !== '');
  return mimeType === WIDGET && !drawn && (words === NO_MODEL || (words === LOADING && !expected));
}
