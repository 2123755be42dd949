import type { JSONObject, JSONValue } from '@lumino/coreutils';
import { expect, test } from 'vitest';
import { SavedOutputs, type SharedCell, type SharedOutput } from '../src/saved-outputs.js';

const WIDGET = 'application/vnd.jupyter.widget-view+json';

class Output implements SharedOutput {
  sets = 0;

  constructor(public data?: JSONValue) {}

  get(): JSONValue | undefined {
    return this.data;
  }

  set(_key: 'data', data: JSONObject): void {
    this.data = data;
    this.sets++;
  }
}

function cellOf(...outputs: Output[]): SharedCell & { undoable: boolean[] } {
  const undoable: boolean[] = [];
  return {
    undoable,
    ymodel: { get: () => outputs },
    transact: (change, may) => {
      undoable.push(may);
      change();
    },
  };
}

const view = (model: string): Output => new Output({ 'text/html': 'then', 'text/plain': 'MemoryWidget()', [WIDGET]: { model_id: model } });

test('the newest picture is put into the outputs of its model, once, as no step to undo', () => {
  const [mine, other, stream] = [view('mine'), view('other'), new Output()];
  const cell = cellOf(stream, mine, other);
  const saved = new SavedOutputs();
  saved.put(cell);
  saved.keep(cell, 'mine', { kind: 'text/html', text: 'before' });
  saved.keep(cell, 'mine', { kind: 'text/html', text: 'now' });
  expect(mine.sets).toBe(0);
  saved.put(cell);
  saved.put(cell);
  expect(mine.data).toEqual({ 'text/html': 'now', 'text/plain': 'MemoryWidget()', [WIDGET]: { model_id: 'mine' } });
  expect([mine.sets, other.sets, stream.sets]).toEqual([1, 0, 0]);
  expect(cell.undoable).toEqual([false]);
});

test('a cell without outputs, and outputs of any shape, are left as they are', () => {
  const malformed = [new Output('text'), new Output([1]), new Output({ [WIDGET]: 'mine' }), new Output({ [WIDGET]: { model_id: 3 } })];
  const saved = new SavedOutputs();
  for (const cell of [cellOf(...malformed), { ymodel: { get: () => undefined }, transact: () => undefined }]) {
    saved.keep(cell, 'mine', { kind: 'text/html', text: 'now' });
    saved.put(cell);
  }
  expect(malformed.map(({ sets }) => sets)).toEqual([0, 0, 0, 0]);
});
