// Each cell's id in the page, where views find the cells that the kernel tells of.

import type { NotebookPanel } from '@jupyterlab/notebook';

export function markCells({ content }: NotebookPanel): void {
  const mark = (): void => content.widgets.forEach(({ node, model }) => (node.dataset['gkCell'] = model.id));
  const follow = (): void => {
    content.model?.cells.changed.connect(mark);
    mark();
  };
  content.modelChanged.connect(follow);
  follow();
}
