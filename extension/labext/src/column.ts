// Where the panes of the extension stand: in one column beside the notebook, one below the other.

import type { ILabShell } from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';

export const PANE_ID = 'pygpukit-pane-'; // how the id of each pane begins

/** Puts a pane below the last one of the column, or begins the column. */
export function addToColumn(shell: ILabShell, notebook: NotebookPanel | null, pane: Widget): void {
  const above = [...shell.widgets('main')].findLast(({ id }) => id.startsWith(PANE_ID));
  const place = above ? { mode: 'split-bottom', ref: above.id } : { mode: 'split-right', ...(notebook && { ref: notebook.id }) };
  shell.add(pane, 'main', { ...place, activate: false } as Parameters<ILabShell['add']>[2]);
}
