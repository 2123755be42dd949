// The status bar's item: one button that says how much memory of the GPU the notebook's kernel holds.

import { Widget } from '@lumino/widgets';

export class StatusItem extends Widget {
  constructor(onClick: () => void) {
    const node = document.createElement('button');
    node.type = 'button';
    node.textContent = 'GPU';
    node.title = "Show the GPU status of this notebook's kernel";
    // The status bar styles text items; a button brings its own frame and font, which are taken off.
    const plain = { background: 'none', border: 'none', font: 'inherit', color: 'inherit', cursor: 'pointer', padding: '0 8px' };
    Object.assign(node.style, plain);
    node.addEventListener('click', onClick);
    super({ node });
    this.addClass('pygpukit-StatusItem');
    this.addClass('jp-StatusBar-TextItem');
    this.addClass('jp-mod-highlighted');
  }

  setText(text: string): void {
    if (this.node.textContent !== text) this.node.textContent = text;
  }
}
