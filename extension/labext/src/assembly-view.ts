// Keeps the pane at the active cell: asks the kernel for listings, joins cursors and lines.

import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { type Assembly, parseAssembly } from './assembly-data.js';
import { AssemblyPane } from './assembly-pane.js';
import { request } from './control.js';
import { isCuda } from './magic.js';
import type { ICudaCells } from './tokens.js';

const AGAIN_MS = 200;

export class AssemblyView {
  readonly pane: AssemblyPane;
  private cell: ICellModel | null = null;
  private panel: NotebookPanel | null = null;
  private kernel = '';
  private question = 0;

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly cuda: ICudaCells,
  ) {
    this.pane = new AssemblyPane({
      kernelChosen: (kernel) => void this.load(kernel),
      lineChosen: (source) => this.goTo(source),
    });
    this.pane.id = 'pygpukit-assembly-pane';
    const follow = (): void => this.follow();
    const changed = (_: unknown, model: ICellModel): void => {
      if (model === this.cell || !this.cell) this.follow(true);
    };
    const moved = (_: unknown, { model, line }: { model: unknown; line: number }): void => {
      if (model === this.cell) this.pane.markSource(line);
    };
    tracker.activeCellChanged.connect(follow);
    cuda.reports.changed.connect(changed);
    cuda.cursors.moved.connect(moved);
    this.pane.disposed.connect(() => {
      this.question++;
      if (this.cell) cuda.cursors.mark(this.cell, null);
      tracker.activeCellChanged.disconnect(follow);
      cuda.reports.changed.disconnect(changed);
      cuda.cursors.moved.disconnect(moved);
    });
    follow();
  }

  /** Shows the active cell where it is a `%%cuda` cell; else the last one stays. */
  private follow(again = false): void {
    const panel = this.tracker.currentWidget;
    const model = this.tracker.activeCell?.model ?? null;
    const cuda = model?.type === 'code' && isCuda(model.sharedModel.getSource());
    if (cuda && (model !== this.cell || again)) {
      if (this.cell && this.cell !== model) this.cuda.cursors.mark(this.cell, null);
      this.cell = model;
      this.panel = panel;
      void this.load(this.kernel);
    } else if (again && this.cell) {
      void this.load(this.kernel);
    }
  }

  private async load(preferred: string): Promise<void> {
    const question = ++this.question;
    const { cell, panel } = this;
    const report = cell ? this.cuda.reports.of(cell) : undefined;
    const connection = panel?.sessionContext.session?.kernel;
    if (!cell || !report || !connection) {
      this.pane.showSentence([], '', 'This cell has not run in this kernel: run it to see its code.');
      return;
    }
    const kernels = report.kernels;
    const kernel = kernels.includes(preferred) ? preferred : kernels[0];
    if (kernel === undefined) {
      this.pane.showSentence([], '', 'The last run of this cell made no kernel.');
      return;
    }
    this.kernel = kernel;
    this.pane.showSentence(kernels, kernel, 'The compiler is at work ...');
    try {
      let assembly: Assembly | null = null;
      for (;;) {
        assembly = parseAssembly(await request(connection, 'assembly', { cell: cell.id, kernel }));
        if (question !== this.question) return;
        if (assembly) break;
        await new Promise((done) => window.setTimeout(done, AGAIN_MS));
        if (question !== this.question) return;
      }
      const edited = cell.sharedModel.getSource() === report.source ? '' : 'The cell was edited since it ran: lines may not fit. ';
      const reason = typeof assembly.card['reason'] === 'string' ? assembly.card['reason'] : '';
      this.pane.showAssembly(kernels, kernel, assembly, edited + reason);
    } catch (error) {
      if (question === this.question) this.pane.showSentence(kernels, kernel, error instanceof Error ? error.message : String(error));
    }
  }

  /** The cell's cursor goes to a line; the focus stays in the pane, so that its keys go on. */
  private goTo(source: number): void {
    const { cell, panel } = this;
    if (!cell || !panel || panel.isDisposed) return;
    const at = panel.content.widgets.findIndex(({ model }) => model === cell);
    if (at < 0) return;
    panel.content.activeCellIndex = at;
    void panel.content.scrollToItem(at, 'smart');
    this.cuda.cursors.mark(cell, source);
  }
}
