// The editors of cells. What one needs beyond its language it gets when it is pointed at, focused or has something to show:
// of a long notebook most never do.

import { type Extension, StateEffect } from '@codemirror/state';
import { type EditorView, ViewPlugin } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';

export class Editors {
  private readonly views = new Map<CodeEditor.IModel, Set<EditorView>>();
  private readonly complete = new WeakSet<EditorView>();

  /** `rest`: what an editor of a cell gets later. `shows`: whether a cell has something to show at once, by `show`. */
  constructor(
    private readonly rest: (model: CodeEditor.IModel) => Extension,
    private readonly shows: (model: CodeEditor.IModel) => boolean,
    private readonly show: (model: CodeEditor.IModel) => void,
  ) {}

  /** The editors of a cell, complete. */
  of(model: CodeEditor.IModel): EditorView[] {
    const views = [...(this.views.get(model) ?? [])];
    for (const view of views) this.finish(model, view);
    return views;
  }

  /** What an editor of a cell is made with. */
  extension(model: CodeEditor.IModel): Extension {
    return ViewPlugin.define((view) => {
      const views = this.views.get(model) ?? new Set();
      this.views.set(model, views.add(view));
      // A view that is being made or updated takes no transaction.
      const later = (): void => queueMicrotask(() => views.has(view) && this.finish(model, view));
      view.dom.addEventListener('mouseenter', later, { once: true });
      view.dom.addEventListener('focusin', later, { once: true });
      if (this.shows(model)) queueMicrotask(() => views.has(view) && this.show(model));
      return {
        destroy: () => {
          views.delete(view);
          if (!views.size) this.views.delete(model);
        },
      };
    });
  }

  private finish(model: CodeEditor.IModel, view: EditorView): void {
    if (this.complete.has(view)) return;
    view.dispatch({ effects: StateEffect.appendConfig.of(this.rest(model)) });
    this.complete.add(view);
  }
}
