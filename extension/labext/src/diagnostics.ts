// Diagnostics of a cell's last run, shown in its editors while the text is still what ran. An edited line loses its own.

import { type Diagnostic, diagnosticCount, forEachDiagnostic, lintKeymap, setDiagnostics, setDiagnosticsEffect } from '@codemirror/lint';
import { EditorState, type Extension, type Text } from '@codemirror/state';
import { type EditorView, keymap } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { type Finding, range } from './finding.js';

interface Shown {
  readonly source: string;
  readonly findings: readonly Finding[];
}

export class Diagnostics {
  private readonly shown = new WeakMap<CodeEditor.IModel, Shown>();

  constructor(private readonly editorsOf: (model: CodeEditor.IModel) => readonly EditorView[]) {}

  /** Shows findings about `source` in the editors of the model, also in those that open later. */
  show(model: CodeEditor.IModel, source: string, findings: readonly Finding[]): void {
    this.shown.set(model, { source, findings });
    this.apply(model);
  }

  clear(model: CodeEditor.IModel): void {
    // A cell is no CUDA cell any more because somebody writes in it: its editor takes no transaction meanwhile.
    if (this.shown.delete(model)) queueMicrotask(() => this.apply(model));
  }

  has(model: CodeEditor.IModel): boolean {
    return this.shown.has(model);
  }

  /** Brings the model's editors up to date. */
  apply(model: CodeEditor.IModel): void {
    const shown = this.shown.get(model);
    for (const view of this.editorsOf(model)) {
      const findings = shown && shown.source === view.state.doc.toString() ? shown.findings : [];
      const diagnostics = findings.flatMap((one) => inDocument(view.state.doc, one) ?? []);
      if (diagnostics.length || diagnosticCount(view.state)) view.dispatch(setDiagnostics(view.state, diagnostics));
    }
  }
}

function inDocument(doc: Text, finding: Finding): Diagnostic | null {
  if (finding.line > doc.lines) return null;
  const line = doc.line(Math.max(finding.line, 1));
  const { from, to } = range(line.text, finding.column);
  return { from: line.from + from, to: line.from + to, severity: finding.severity, source: 'CUDA', message: finding.message };
}

/** A line that is edited loses its diagnostics; the others move with the text. */
const dropEdited = EditorState.transactionExtender.of((transaction) => {
  if (!transaction.docChanged) return null;
  const kept: Diagnostic[] = [];
  let dropped = false;
  forEachDiagnostic(transaction.startState, (one, from, to) => {
    const line = transaction.startState.doc.lineAt(from);
    if (transaction.changes.touchesRange(line.from, line.to)) dropped = true;
    else kept.push({ ...one, from: transaction.changes.mapPos(from, 1), to: transaction.changes.mapPos(to, -1) });
  });
  return dropped ? { effects: setDiagnosticsEffect.of(kept) } : null;
});

/** What an editor needs that shows diagnostics. */
export const diagnosed: Extension = [dropEdited, keymap.of(lintKeymap)];
