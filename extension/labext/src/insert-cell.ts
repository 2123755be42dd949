// Code of a chat's answer as a new cell below the one that shows the chat.

import { type INotebookTracker, NotebookActions } from '@jupyterlab/notebook';

/** Of a view in the page, when somebody presses "Into a cell": detail {source}. */
const EVENT = 'pygpukit:insert';

export function insertCells(tracker: INotebookTracker): void {
  document.addEventListener(EVENT, (event) => {
    const { detail, target } = event as CustomEvent<{ source?: unknown } | null>;
    const source = detail?.source;
    if (typeof source !== 'string' || !(target instanceof Node)) return;
    const panel = tracker.find(({ node }) => node.contains(target));
    const at = panel?.content.widgets.findIndex(({ node }) => node.contains(target)) ?? -1;
    if (!panel || at < 0) return;
    panel.content.activeCellIndex = at;
    NotebookActions.insertBelow(panel.content);
    panel.content.activeCell?.model.sharedModel.setSource(source);
    event.preventDefault(); // tells the view that it was done
  });
}
