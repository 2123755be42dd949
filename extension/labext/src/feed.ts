// The status feed of the notebook that is looked at: the kernel says how its GPU is whenever that changes, also while busy.

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { isObject, Late, request } from './control.js';
import type { Reports } from './reports.js';

const TARGET = 'pygpukit.status.v1';

/** The comm that brings one kernel's messages. Nothing is ever sent on it: that goes over the control channel. */
interface Line {
  readonly kernel: Kernel.IKernelConnection;
  readonly comm: Kernel.IComm;
}

export class StatusFeed {
  /** Emitted when what is known of a kernel has changed. */
  readonly changed = new Signal<StatusFeed, void>(this);
  private readonly states = new Map<string, JSONObject>();
  private line: Line | null = null;
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
    // A cell may have taken the extension out of the kernel and loaded it again: then the kernel knows no page.
    reports.answered.connect((_, kernel) => this.line?.kernel === kernel && void this.renew(this.line));
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
    const kernel = panel.sessionContext.session?.kernel;
    this.states.delete(kernel?.id ?? '');
    if (this.line?.kernel.id === kernel?.id) this.stop(false);
    this.changed.emit();
  }

  /** The kernel of the current notebook is followed while the page is visible, and no other. */
  private follow(): void {
    const panel = this.tracker.currentWidget;
    const kernel = panel?.sessionContext.session?.kernel;
    const target = this.enabled && document.visibilityState === 'visible' && this.reports.knows(panel) && kernel ? kernel : null;
    if ((target?.id ?? '') !== (this.line?.kernel.id ?? '')) {
      this.stop();
      if (panel && target) this.start(panel, target);
    }
    this.changed.emit();
  }

  private start(panel: NotebookPanel, kernel: Kernel.IKernelConnection): void {
    const comm = kernel.createComm(TARGET);
    comm.commsOverSubshells = 'disabled' as Kernel.IComm['commsOverSubshells']; // it needs none
    const line = { kernel, comm };
    this.line = line;
    comm.onMsg = ({ content }) => {
      if (!isObject(content.data) || this.line !== line) return;
      const { answer, ...message } = content.data;
      if (answer === true) void this.renew(line);
      if ('open' in message) return this.asked(panel, message);
      this.states.set(kernel.id, message);
      this.changed.emit();
    };
    void this.renew(line);
  }

  /** Tells the kernel that this page follows, or still does. */
  private async renew(line: Line): Promise<void> {
    for (;;) {
      try {
        await request(line.kernel, 'follow', { comm: line.comm.commId });
        return;
      } catch (error) {
        // One that answers between cells has the request, and follows it then; another is asked again.
        if (!(error instanceof Late) || error.answer || this.line !== line) return;
      }
    }
  }

  private stop(tell = true): void {
    const line = this.line;
    this.line = null;
    if (!line || line.comm.isDisposed) return;
    // Where this fails the kernel finds out: it asks whoever was silent for long.
    if (tell) request(line.kernel, 'leave', { comm: line.comm.commId }).catch(() => undefined);
    line.comm.dispose();
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
