// Gives `%%cuda` cells the CUDA language, whatever happens to them, and takes it back when they are none any more.

import type { ICellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { CUDA_MIME, isCuda } from './magic.js';

export class CudaMode {
  /** Of each cell that has an editor: the language that the lab gave it. */
  private readonly given = new WeakMap<CodeEditor.IModel, string>();
  private enabled = true;

  /** `left` is told of each cell that is CUDA no more. */
  constructor(private readonly left: (model: CodeEditor.IModel) => void) {}

  /**
   * Follows a cell for which an editor is being made: it has its language before it is parsed for the first time, and a
   * cell that was never looked at costs nothing. What is no code cell is left alone.
   */
  follow(model: CodeEditor.IModel): void {
    if ((model as Partial<ICellModel>).type !== 'code' || this.given.has(model)) return;
    this.given.set(model, model.mimeType);
    model.sharedModel.changed.connect((_, { sourceChange }) => sourceChange && this.check(model));
    model.mimeTypeChanged.connect(() => this.check(model));
    this.check(model);
  }

  /** Switched off, all cells are Python; takes effect on a cell when it is checked. */
  setEnabled(enabled: boolean): void {
    this.enabled = enabled;
  }

  /** Whether a cell is to be treated as CUDA, also one that has no editor yet. */
  covers(model: CodeEditor.IModel): boolean {
    return this.enabled && isCuda(model.sharedModel.getSource());
  }

  check(model: CodeEditor.IModel): void {
    const given = this.given.get(model);
    if (given === undefined) return;
    if (model.mimeType !== CUDA_MIME) this.given.set(model, model.mimeType);
    const cuda = this.covers(model);
    if (cuda && model.mimeType !== CUDA_MIME) model.mimeType = CUDA_MIME;
    if (!cuda && model.mimeType === CUDA_MIME) {
      model.mimeType = given;
      this.left(model);
    }
  }
}
