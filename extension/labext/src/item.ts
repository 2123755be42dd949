// The status bar's item: one button that says how the GPU of the notebook's kernel is, and opens the workbench.

import { Widget } from '@lumino/widgets';

const TITLE = 'Open the GPU workbench';

export class StatusItem extends Widget {
  constructor(onClick: () => void) {
    const node = document.createElement('button');
    node.type = 'button';
    node.textContent = 'GPU';
    node.title = TITLE;
    // The status bar styles text items; a button brings its own frame and font, which are taken off.
    const plain = { background: 'none', border: 'none', font: 'inherit', color: 'inherit', cursor: 'pointer', padding: '0 8px' };
    Object.assign(node.style, plain);
    node.addEventListener('click', onClick);
    super({ node });
    this.addClass('pygpukit-StatusItem');
    this.addClass('jp-StatusBar-TextItem');
    this.addClass('jp-mod-highlighted');
  }

  /** `line`: the whole status, for the tooltip. */
  setText(text: string, line: string): void {
    if (this.node.textContent !== text) this.node.textContent = text;
    this.node.title = line ? `${line}\n${TITLE}` : TITLE;
  }
}
