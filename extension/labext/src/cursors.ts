// Where the cursors of cells are, and a mark on the line that a line of assembly comes from.

import { type Extension, RangeSet, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { Signal } from '@lumino/signaling';

const setMark = StateEffect.define<number | null>();
const line = Decoration.line({ class: 'gk-source-line' });

const mark = StateField.define<DecorationSet>({
  create: () => RangeSet.empty,
  update: (marks, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(setMark)) return effect.value === null ? RangeSet.empty : RangeSet.of(line.range(effect.value));
    }
    return transaction.docChanged ? RangeSet.empty : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export class Cursors {
  /** Emitted when the user moves a cursor: the model, and its line from 1. */
  readonly moved = new Signal<Cursors, { model: CodeEditor.IModel; line: number }>(this);

  constructor(private readonly editorsOf: (model: CodeEditor.IModel) => readonly EditorView[]) {}

  /** Marks a line (from 1) and brings it into view; null takes the mark away. */
  mark(model: CodeEditor.IModel, number: number | null): void {
    for (const view of this.editorsOf(model)) {
      if (number === null || number > view.state.doc.lines) {
        view.dispatch({ effects: setMark.of(null) });
        continue;
      }
      const { from } = view.state.doc.line(number);
      view.dispatch({ effects: [setMark.of(from), EditorView.scrollIntoView(from)], selection: { anchor: from } });
    }
  }

  /** What the model's editors need. */
  extension(model: CodeEditor.IModel): Extension {
    const followed = EditorView.updateListener.of((update) => {
      if (!update.selectionSet || !update.view.hasFocus) return;
      this.moved.emit({ model, line: update.state.doc.lineAt(update.state.selection.main.head).number });
    });
    return [mark, followed];
  }
}
