// What a notebook is saved with: the newest still of each view, put into the shared document as late as its saving.

import type { JSONObject, JSONValue } from '@lumino/coreutils';
import { isObject } from './control.js';
import { HTML, MARKDOWN, type Still, WIDGET } from './view-output.js';

/** An output as the shared document keeps it: what is set here is saved, and nothing is drawn again. */
export interface SharedOutput {
  get(key: 'data'): JSONValue | undefined;
  set(key: 'data', data: JSONObject): void;
}

/** The part of a code cell's shared model that is used here. */
export interface SharedCell {
  readonly ymodel: { get(key: 'outputs'): Iterable<SharedOutput> | undefined };
  transact(change: () => void, undoable: boolean): void;
}

export class SavedOutputs {
  private readonly newest = new WeakMap<SharedOutput, Still>();

  /** Remembers a still for each of the cell's outputs that shows this model. */
  keep(cell: SharedCell, model: string, still: Still): void {
    for (const output of cell.ymodel.get('outputs') ?? []) {
      const view = dataOf(output)[WIDGET];
      if (isObject(view) && view['model_id'] === model) this.newest.set(output, still);
    }
  }

  /** Puts what is remembered into the cell's outputs. */
  put(cell: SharedCell): void {
    for (const output of cell.ymodel.get('outputs') ?? []) {
      const still = this.newest.get(output);
      const { [HTML]: html, [MARKDOWN]: markdown, ...others } = dataOf(output);
      if (still === undefined || (still.kind === HTML ? html : markdown) === still.text) continue;
      cell.transact(() => output.set('data', { ...others, [still.kind]: still.text }), false);
    }
  }
}

function dataOf(output: SharedOutput): JSONObject {
  const data = output.get('data');
  return isObject(data) ? data : {};
}
