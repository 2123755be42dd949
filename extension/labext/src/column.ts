// Where the panes of the extension stand: in one column beside the notebook, one below the other while each has room to be read.

import type { ILabShell } from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';

export const PANE_ID = 'pygpukit-pane-'; // how the id of each pane begins
/** Of a tile, its tab too: a dashboard shows its figures and its main picture in it. */
const MIN_TILE_PX = 360;

/** Whether one more tile has room in a column of this height. */
export function hasRoom(columnPx: number, tiles: number): boolean {
  return columnPx / (tiles + 1) >= MIN_TILE_PX;
}

/** Begins the column, or puts a pane below its last tile; where that has no room, as a tab behind it. */
export function addToColumn(shell: ILabShell, notebook: NotebookPanel | null, pane: Widget): void {
  const tiles = [...shell.widgets('main')].filter(({ id, isHidden }) => id.startsWith(PANE_ID) && !isHidden);
  const last = tiles.at(-1);
  const columnPx = shell.node.querySelector('#jp-main-dock-panel')?.clientHeight ?? Infinity;
  const below = hasRoom(columnPx, tiles.length) ? 'split-bottom' : 'tab-after';
  const place = last ? { mode: below, ref: last.id } : { mode: 'split-right', ...(notebook && { ref: notebook.id }) };
  shell.add(pane, 'main', { ...place, activate: false } as Parameters<ILabShell['add']>[2]);
}
