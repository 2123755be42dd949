// The editors of cells. What one needs beyond its language it gets when it is pointed at, focused or has something to show: of a
// long notebook most never do, and each change lays out the whole page.

import { type Extension, StateEffect } from '@codemirror/state';
import { type EditorView, ViewPlugin } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';

export class Editors {
  private readonly views = new Map<CodeEditor.IModel, Set<EditorView>>();
  /** What an editor that lacks something gets, by its element. */
  private readonly wanting = new WeakMap<Element, () => void>();

  /** `rest`: what an editor of a cell gets later. `shows`: whether a cell has something to show at once, by `show`. */
  constructor(
    private readonly rest: (model: CodeEditor.IModel) => Extension,
    private readonly shows: (model: CodeEditor.IModel) => boolean,
    private readonly show: (model: CodeEditor.IModel) => void,
  ) {
    // A view that is being made or updated takes no transaction.
    const wake = ({ target }: Event): void => {
      const editor = target instanceof Element ? target.closest('.cm-editor') : null;
      const finish = editor && this.wanting.get(editor);
      if (finish) queueMicrotask(finish);
    };
    for (const kind of ['pointerover', 'focusin']) document.addEventListener(kind, wake, { capture: true, passive: true });
  }

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
      this.wanting.set(view.dom, () => views.has(view) && this.finish(model, view));
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
    if (!this.wanting.has(view.dom)) return;
    view.dispatch({ effects: StateEffect.appendConfig.of(this.rest(model)) });
    this.wanting.delete(view.dom);
  }
}
