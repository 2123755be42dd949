// The status feed of the notebook that is looked at: the kernel says how its GPU is whenever that changes, also while busy.

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { isObject, subshellStarted } from './control.js';
import type { Reports } from './reports.js';

const TARGET = 'pygpukit.status.v1';

export class StatusFeed {
  /** Emitted when what is known of a kernel has changed. */
  readonly changed = new Signal<StatusFeed, void>(this);
  private readonly states = new Map<string, JSONObject>();
  private comm: Kernel.IComm | null = null;
  private followed = '';
  private enabled = true;

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly reports: Reports,
  ) {
    tracker.currentChanged.connect(() => this.follow());
    tracker.widgetAdded.connect((_, panel) => {
      panel.sessionContext.kernelChanged.connect(() => this.follow());
      panel.sessionContext.statusChanged.connect((_, status) => {
        if (status === 'restarting' || status === 'autorestarting' || status === 'dead') this.lost(panel);
      });
      panel.disposed.connect(() => this.follow());
    });
    reports.met.connect(() => this.follow());
    document.addEventListener('visibilitychange', () => this.follow());
  }

  setEnabled(enabled: boolean): void {
    this.enabled = enabled;
    this.follow();
  }

  /** What the kernel of a notebook said last. */
  of(panel: NotebookPanel | null): JSONObject | undefined {
    return this.states.get(panel?.sessionContext.session?.kernel?.id ?? '');
  }

  private lost(panel: NotebookPanel): void {
    const id = panel.sessionContext.session?.kernel?.id ?? '';
    this.states.delete(id);
    if (this.followed === id) this.stop();
    this.changed.emit();
  }

  /** The feed is open for the current notebook while the page is visible, and for no other. */
  private follow(): void {
    const panel = this.tracker.currentWidget;
    const kernel = panel?.sessionContext.session?.kernel;
    const wanted = this.enabled && document.visibilityState === 'visible' && this.reports.knows(panel) && kernel ? kernel : null;
    if ((wanted?.id ?? '') !== this.followed) {
      this.stop();
      if (wanted) void this.open(wanted);
    }
    this.changed.emit();
  }

  private async open(kernel: Kernel.IKernelConnection): Promise<void> {
    this.followed = kernel.id;
    const comm = kernel.createComm(TARGET);
    this.comm = comm;
    await subshellStarted(kernel, comm);
    if (this.comm !== comm) return;
    comm.onMsg = ({ content }) => {
      if (!isObject(content.data) || this.comm !== comm) return;
      this.states.set(kernel.id, content.data);
      this.changed.emit();
    };
    comm.open();
  }

  private stop(): void {
    const comm = this.comm;
    this.comm = null;
    this.followed = '';
    if (comm && !comm.isDisposed) comm.close();
  }
}

/** "1.5 MiB" for a size in bytes, as the kernel writes it. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), 4);
  return `${(bytes / 1024 ** power).toFixed(1)} ${'KMGT'[power - 1]}iB`;
}

/** What the status bar says of a state: the pool's use, nothing where no backend is open. */
export function shortText(state: JSONObject | undefined): string {
  const used = state?.['pool_used'];
  return typeof used === 'number' ? `GPU ${size(used)}` : 'GPU';
}
