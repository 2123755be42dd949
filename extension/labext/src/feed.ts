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
  private opened = false;
  private followed = '';
  private enabled = true;

  /** `asked` is told what the kernel asks of the page, see gp.lab.open(). */
  constructor(
    private readonly tracker: INotebookTracker,
    private readonly reports: Reports,
    private readonly asked: (panel: NotebookPanel, message: JSONObject) => void,
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
      if (panel && wanted) void this.open(panel, wanted);
    }
    this.changed.emit();
  }

  private async open(panel: NotebookPanel, kernel: Kernel.IKernelConnection): Promise<void> {
    this.followed = kernel.id;
    const comm = kernel.createComm(TARGET);
    this.comm = comm;
    await subshellStarted(kernel, comm);
    if (this.comm !== comm) return;
    comm.onMsg = ({ content }) => {
      if (!isObject(content.data) || this.comm !== comm) return;
      if ('open' in content.data) return this.asked(panel, content.data);
      this.states.set(kernel.id, content.data);
      this.changed.emit();
    };
    comm.open();
    this.opened = true;
  }

  private stop(): void {
    const comm = this.comm;
    this.comm = null;
    this.followed = '';
    const opened = this.opened;
    this.opened = false;
    if (!comm || comm.isDisposed) return;
    // The kernel closes the comm then. Closed here, its subshell would end, maybe before the kernel has read of it.
    if (opened) comm.send({ leave: true });
    else comm.dispose();
  }
}

/** "1.5 MiB" for a size in bytes, as the kernel writes it. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), 4);
  return `${(bytes / 1024 ** power).toFixed(1)} ${'KMGT'[power - 1]}iB`;
}

/** What the status bar says of a state: what the kernel knows of the device, the pool's use, the launches. */
export function shortText(state: JSONObject | undefined): string {
  const said = (key: string, text: (value: number) => string): string[] => {
    const value = state?.[key];
    return typeof value === 'number' ? [text(value)] : [];
  };
  const launches = [state?.['launches'], state?.['host_launches']].filter((one) => typeof one === 'number');
  const count = launches.reduce((sum, one) => sum + one, 0);
  const parts = [
    ...said('gpu_utilization', (percent) => `${percent} %`),
    ...said('temperature', (celsius) => `${celsius} \u00b0C`),
    ...said('pool_used', size),
    ...(launches.length ? [`${count} launch${count === 1 ? '' : 'es'}`] : []),
  ];
  return `GPU ${parts.join(', ')}`.trim();
}
