// Gives `%%cuda` cells the CUDA language, whatever happens to them, and takes it back when they are none any more.

import type { ICellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { CUDA_MIME, isCuda } from './magic.js';

interface Followed {
  /** The language that the lab gave the cell last. */
  ownType: string;
  /** Gives it one without asking here again. */
  readonly set: (mimeType: string) => void;
}

export class CudaMode {
  /** The cells that have an editor. */
  private readonly followed = new WeakMap<CodeEditor.IModel, Followed>();
  private enabled = true;

  /** `left` is told of each cell that is CUDA no more. */
  constructor(private readonly left: (model: CodeEditor.IModel) => void) {}

  /**
   * Follows a cell whose editor is about to be made, so that it is drawn in its language at once: a change draws it anew
   * and lays out the page. What is no code cell is left alone.
   */
  follow(model: CodeEditor.IModel): void {
    if ((model as Partial<ICellModel>).type !== 'code' || this.followed.has(model)) return;
    const { get, set } = accessor(model, 'mimeType');
    if (!get || !set) return console.error('pygpukit: the cells of this lab have no language to set, so %%cuda cells stay Python.');
    this.followed.set(model, { ownType: model.mimeType, set: (mimeType) => set.call(model, mimeType) });
    // The lab sets the language when it has made a cell and whenever a kernel starts, and each change draws the editor
    // anew: a CUDA cell keeps its own, and nobody is told of another.
    Object.defineProperty(model, 'mimeType', { configurable: true, get: () => get.call(model), set: (value: string) => this.give(model, value) });
    model.sharedModel.changed.connect((_, { sourceChange }) => sourceChange && this.check(model));
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
    const followed = this.followed.get(model);
    if (!followed) return;
    const [was, is] = [model.mimeType === CUDA_MIME, this.covers(model)];
    followed.set(is ? CUDA_MIME : followed.ownType);
    if (was && !is) this.left(model);
  }

  /** The lab sets the language of each cell more than once while a notebook opens: the text is not read again for it. */
  private give(model: CodeEditor.IModel, mimeType: string): void {
    const followed = this.followed.get(model);
    if (!followed || mimeType === CUDA_MIME) return;
    followed.ownType = mimeType;
    if (model.mimeType !== CUDA_MIME) followed.set(mimeType);
  }
}

function accessor(model: object, name: string): PropertyDescriptor {
  for (let at: unknown = Object.getPrototypeOf(model); at; at = Object.getPrototypeOf(at)) {
    const descriptor = Object.getOwnPropertyDescriptor(at, name);
    if (descriptor) return descriptor;
  }
  return {};
}
