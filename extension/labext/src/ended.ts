// The views in a notebook are told that their kernel has ended or was restarted: no message comes of it. Badges on cells were of its runs.

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

const ENDINGS: readonly Kernel.Status[] = ['restarting', 'autorestarting', 'dead'];

export function tellEnded({ node, sessionContext }: Pick<NotebookPanel, 'node' | 'sessionContext'>): void {
  const tell = (): void => {
    for (const view of node.querySelectorAll<HTMLElement>('.gk-panel')) view.dataset['gkEnded'] = '';
    for (const badge of node.querySelectorAll('.gk-badge')) badge.remove();
  };
  sessionContext.kernelChanged.connect(tell);
  sessionContext.statusChanged.connect((_, status) => {
    if (ENDINGS.includes(status)) tell();
  });
}
