// Gives `%%cuda` cells the CUDA language, whatever happens to them, and takes it back when they are none any more.

import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { CUDA_MIME, isCuda } from './magic.js';

export class CudaMode {
  private readonly followed = new WeakSet<ICellModel>();
  private readonly panels = new Set<NotebookPanel>();
  private enabled = true;

  /** `left` is told of each cell that is CUDA no more. */
  constructor(
    tracker: INotebookTracker,
    private readonly left: (model: ICellModel) => void,
  ) {
    tracker.forEach((panel) => this.follow(panel));
    tracker.widgetAdded.connect((_, panel) => this.follow(panel));
  }

  /** Switched off, all cells are Python. */
  setEnabled(enabled: boolean): void {
    if (this.enabled === enabled) return;
    this.enabled = enabled;
    for (const panel of this.panels) this.followCells(panel);
  }

  private follow(panel: NotebookPanel): void {
    this.panels.add(panel);
    panel.disposed.connect(() => this.panels.delete(panel));
    const followModel = (): void => {
      const cells = panel.model?.cells;
      if (!cells) return;
      cells.changed.connect(() => this.followCells(panel));
      this.followCells(panel);
    };
    panel.content.modelChanged.connect(followModel);
    followModel();
  }

  private followCells(panel: NotebookPanel): void {
    for (const model of panel.model?.cells ?? []) {
      if (model.type !== 'code') continue;
      if (!this.followed.has(model)) {
        this.followed.add(model);
        const check = (): void => this.check(panel, model);
        model.sharedModel.changed.connect(check);
        model.mimeTypeChanged.connect(check);
      }
      this.check(panel, model);
    }
  }

  private check(panel: NotebookPanel, model: ICellModel): void {
    if (panel.isDisposed) return;
    const cuda = this.enabled && isCuda(model.sharedModel.getSource());
    if (cuda && model.mimeType !== CUDA_MIME) model.mimeType = CUDA_MIME;
    if (!cuda && model.mimeType === CUDA_MIME) {
      model.mimeType = panel.content.codeMimetype;
      this.left(model);
    }
  }
}
