// A live dashboard beside its notebook: asks the notebook's kernel for the widget's model and shows it as an output would.

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import { requestPatiently } from './control.js';
import type { Reports } from './reports.js';
import { WIDGET } from './view-output.js';

export class DashboardPane extends Panel {
  /** Emitted when the notebook has another path. */
  readonly moved = new Signal<this, void>(this);
  /** Whether a dashboard is shown, and not a sentence. */
  live = false;
  private notebook: NotebookPanel | null = null;
  private question = 0;

  /** `key`: what the lab knows the pane by after a reload. `model` is the widget's, where the kernel has told it already. */
  constructor(
    tracker: INotebookTracker,
    reports: Reports,
    readonly view: string,
    public path: string,
    readonly key: string,
    model?: string,
  ) {
    super();
    this.addClass('gk-dashboard-pane');
    this.say(`This view waits for the notebook ${path}.`);
    const open = tracker.find(({ context }) => context.path === path);
    if (open) this.follow(open, model);
    // A slot of this object is taken away with it.
    tracker.widgetAdded.connect(this.added, this);
    reports.met.connect(this.met, this);
  }

  /** Shows the dashboard of this model, or of the one that the kernel tells. */
  async load(model?: string): Promise<void> {
    const question = ++this.question;
    try {
      const id = model ?? (await this.ask((late) => question === this.question && this.say(late.message)));
      if (question === this.question) await this.display(id);
    } catch (error) {
      if (question === this.question) this.say(error instanceof Error ? error.message : String(error));
    }
  }

  private async ask(late: (error: Error) => void): Promise<string> {
    await this.notebook?.sessionContext.ready;
    const kernel = this.notebook?.sessionContext.session?.kernel;
    if (!kernel) throw new Error(`The notebook ${this.path} has no kernel: start one, then open this view again.`);
    const { model } = await requestPatiently(kernel, 'view', { view: this.view }, late);
    return String(model);
  }

  private async display(model: string): Promise<void> {
    const rendermime = this.notebook?.content.rendermime;
    if (!rendermime || this.isDisposed) return;
    if (!rendermime.mimeTypes.includes(WIDGET)) throw new Error('The lab shows no widgets: install jupyterlab_widgets, then reload the page.');
    const renderer = rendermime.createRenderer(WIDGET);
    this.fill(renderer, true);
    await renderer.renderModel(rendermime.createModel({ data: { [WIDGET]: { model_id: model, version_major: 2, version_minor: 0 } } }));
  }

  private say(sentence: string): void {
    const node = document.createElement('p');
    node.className = 'gk-dashboard-said';
    node.textContent = sentence;
    this.fill(new Widget({ node }), false);
  }

  private fill(widget: Widget, live: boolean): void {
    if (this.isDisposed) return;
    for (const old of [...this.widgets]) old.dispose();
    this.addWidget(widget);
    this.live = live;
  }

  private added(_: unknown, panel: NotebookPanel): void {
    if (!this.notebook && panel.context.path === this.path) this.follow(panel);
  }

  private met(_: unknown, kernel: Kernel.IKernelConnection): void {
    if (!this.live && this.notebook?.sessionContext.session?.kernel?.id === kernel.id) void this.load();
  }

  private follow(panel: NotebookPanel, model?: string): void {
    this.notebook = panel;
    this.node.dataset['gkNotebook'] = panel.id; // where the view finds its cells
    panel.disposed.connect(this.closed, this);
    panel.context.pathChanged.connect(this.renamed, this);
    panel.sessionContext.statusChanged.connect(this.kernelStatus, this);
    // Not before the kernel is there: a first change is its coming.
    void panel.sessionContext.ready.then(() => {
      if (this.notebook === panel && !this.isDisposed) panel.sessionContext.kernelChanged.connect(this.ended, this);
    });
    void this.load(model);
  }

  private closed(): void {
    this.notebook = null;
    this.question++;
    this.say(`The notebook ${this.path} was closed: open it to see this view again.`);
  }

  private renamed(_: unknown, path: string): void {
    this.path = path;
    this.moved.emit();
  }

  private kernelStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') this.ended();
  }

  private ended(): void {
    this.question++;
    this.say('The kernel is another one now: this view comes back when a cell has run %load_ext pygpukit in it.');
  }
}
