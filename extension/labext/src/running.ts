// The Running tab's section: how much memory of the GPU the kernel of each open notebook holds.

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IRunningSessionManagers } from '@jupyterlab/running';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { type StatusFeed, size } from './feed.js';
import { chipIcon } from './icon.js';

export function addRunning(app: JupyterFrontEnd, managers: IRunningSessionManagers, tracker: INotebookTracker, feed: StatusFeed): void {
  const panels = (): NotebookPanel[] => {
    const panels: NotebookPanel[] = [];
    tracker.forEach((panel) => {
      if (typeof feed.of(panel)?.['pool_used'] === 'number') panels.push(panel);
    });
    return panels;
  };
  managers.add({
    name: 'GPU memory',
    running: () =>
      panels().map((panel) => ({
        icon: () => chipIcon,
        label: () => `${panel.title.label}: ${size(Number(feed.of(panel)?.['pool_used'] ?? 0))}`,
        labelTitle: () => String(feed.of(panel)?.['line'] ?? ''),
        open: () => app.shell.activateById(panel.id),
        shutdown: () => void panel.sessionContext.shutdown(),
      })),
    shutdownAll: () => panels().forEach((panel) => void panel.sessionContext.shutdown()),
    refreshRunning: () => feed.changed.emit(),
    runningChanged: feed.changed,
    shutdownLabel: 'Shut down the kernel',
    shutdownAllLabel: 'Shut down all',
    shutdownAllConfirmationText: 'Shut down the kernels of all notebooks that hold memory of the GPU?',
  });
}
