// What the kernel says about the `%%cuda` cells of a notebook after each run: diagnostics and the kernels they made.

import { type ICellModel, type ICodeCellModel, isCodeCellModel } from '@jupyterlab/cells';
import { type INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { JSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { isObject, request, requestPatiently } from './control.js';
import { type Finding, findings } from './finding.js';
import type { Option } from './hover.js';
import { isCuda, loadsExtension } from './magic.js';

export interface Report {
  /** The cell's text when it ran. */
  readonly source: string;
  readonly findings: readonly Finding[];
  readonly kernels: readonly string[];
}

const SETTLE_MS = 50; // cells that run in a row are asked about together

export class Reports {
  /** Emitted with the cell whose report has changed. */
  readonly changed = new Signal<Reports, ICellModel>(this);
  /** Emitted with a kernel that has answered for the first time: it knows pygpukit. */
  readonly met = new Signal<Reports, Kernel.IKernelConnection>(this);
  /** Emitted with a kernel whenever it has answered after a run. */
  readonly answered = new Signal<Reports, Kernel.IKernelConnection>(this);
  /** The magic's options, by flag. */
  readonly options = new Map<string, Option>();
  private readonly reports = new WeakMap<ICellModel, Report>();
  private readonly known = new Set<string>();
  private readonly timers = new WeakMap<NotebookPanel, number>();

  constructor(tracker: INotebookTracker) {
    NotebookActions.executed.connect((_, { notebook }) => {
      const panel = tracker.find((one) => one.content === notebook);
      if (panel) this.ask(panel);
    });
    tracker.forEach((panel) => this.follow(panel));
    tracker.widgetAdded.connect((_, panel) => this.follow(panel));
  }

  of(model: ICellModel): Report | undefined {
    return this.reports.get(model);
  }

  /** Whether the kernel of a notebook has answered, so that it may be asked without a word. */
  knows(panel: NotebookPanel | null): boolean {
    return this.known.has(panel?.sessionContext.session?.kernel?.id ?? '');
  }

  private follow(panel: NotebookPanel): void {
    const context = panel.sessionContext;
    context.kernelChanged.connect(() => this.forget(panel));
    context.statusChanged.connect((_, status) => {
      if (status === 'restarting' || status === 'autorestarting') {
        this.known.delete(context.session?.kernel?.id ?? '');
        this.forget(panel);
      }
    });
    panel.disposed.connect(() => window.clearTimeout(this.timers.get(panel)));
    // After a reload the kernel still knows what its cells did.
    void Promise.all([context.ready, panel.context.ready]).then(() => this.ask(panel));
  }

  /** Nothing that a kernel said before it ended is known of the cells any more. */
  private forget(panel: NotebookPanel): void {
    for (const model of panel.model?.cells ?? []) this.set(model, undefined);
  }

  private ask(panel: NotebookPanel): void {
    window.clearTimeout(this.timers.get(panel));
    this.timers.set(
      panel,
      window.setTimeout(() => void this.askNow(panel), SETTLE_MS),
    );
  }

  /** A kernel is asked once a cell has run that is `%%cuda` or loads the extension: another need not know pygpukit. */
  private async askNow(panel: NotebookPanel): Promise<void> {
    const kernel = panel.sessionContext.session?.kernel;
    const concerns = (source: string): boolean => isCuda(source) || loadsExtension(source);
    const ran = codeCells(panel).some(({ executionCount, sharedModel }) => executionCount !== null && concerns(sharedModel.getSource()));
    if (panel.isDisposed || !kernel || !ran) return;
    const cells = cudaCells(panel);
    try {
      const { reports } = await requestPatiently(kernel, 'reports', { cells: cells.map(({ id }) => id) });
      this.answered.emit(kernel);
      this.meet(kernel).catch(() => undefined); // its options are not waited for: the answer to a later run would come before
      for (const model of cells) this.set(model, isObject(reports) ? parse(reports[model.id]) : undefined);
    } catch {
      // The kernel does not know pygpukit, or is gone: then there is nothing to show.
    }
  }

  private async meet(kernel: Kernel.IKernelConnection): Promise<void> {
    if (this.known.has(kernel.id)) return;
    this.known.add(kernel.id);
    this.met.emit(kernel);
    const { options } = await request(kernel, 'options');
    for (const one of Array.isArray(options) ? options : []) {
      if (!isObject(one) || !Array.isArray(one['flags'])) continue;
      const flags = one['flags'].map(String);
      for (const flag of flags) this.options.set(flag, { flags, value: String(one['value']), help: String(one['help']) });
    }
  }

  private set(model: ICellModel, report: Report | undefined): void {
    if (report) this.reports.set(model, report);
    else if (!this.reports.delete(model)) return;
    this.changed.emit(model);
  }
}

/** Whether a notebook has a CUDA cell; it is asked whenever the lab looks at its toolbar. */
export function hasCuda(panel: NotebookPanel): boolean {
  return codeCells(panel).some((one) => isCuda(one.sharedModel.getSource()));
}

function cudaCells(panel: NotebookPanel): ICodeCellModel[] {
  return codeCells(panel).filter((one) => isCuda(one.sharedModel.getSource()));
}

function codeCells(panel: NotebookPanel): ICodeCellModel[] {
  return [...(panel.model?.cells ?? [])].filter(isCodeCellModel);
}

function parse(data: JSONValue | undefined): Report | undefined {
  if (!isObject(data) || typeof data['source'] !== 'string' || !Array.isArray(data['kernels'])) return undefined;
  return { source: data['source'], findings: findings(data['diagnostics']), kernels: data['kernels'].map(String) };
}
