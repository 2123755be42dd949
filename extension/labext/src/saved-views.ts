// A notebook that is opened again shows its views as they were saved, until a kernel has them.

import type { CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';
import { lacksView, savedStill } from './view-output.js';
import { typeset } from './markdown.js';
import { SAVED_CLASS, savedPicture } from './saved-picture.js';

type OutputArea = CodeCell['outputArea'];

/** What draws an output. */
interface Renderer extends Widget {
  readonly mimeType: string;
}

export class SavedViews {
  private readonly watched = new WeakSet<Renderer>();

  constructor(private readonly panel: NotebookPanel) {
    const { content } = panel;
    content.widgets.forEach((cell) => this.follow(cell as CodeCell));
    content.model?.cells.changed.connect((_, { type, newIndex, newValues }) => {
      if (type === 'add') content.widgets.slice(newIndex, newIndex + newValues.length).forEach((cell) => this.follow(cell as CodeCell));
    });
  }

  private follow({ model, outputArea }: CodeCell): void {
    if (model.type !== 'code') return;
    outputArea.outputLengthChanged.connect((area) => this.check(area));
    this.check(outputArea);
  }

  private check(area: OutputArea): void {
    for (let at = 0; at < area.model.length; at++) {
      const item = area.widgets[at];
      const { data, metadata } = area.model.get(at);
      if (item && savedStill(data, metadata)) this.watch(area, item);
    }
  }

  /** Nothing tells when ipywidgets has given up: its words in the output's place are seen. What it draws later takes their place. */
  private watch(area: OutputArea, item: Widget): void {
    const renderer = [...item.children()].find((one): one is Renderer => 'renderModel' in one && 'mimeType' in one);
    if (!renderer || this.watched.has(renderer)) return;
    this.watched.add(renderer);
    const { node, mimeType } = renderer;
    let shown = false;
    const look = (): void => {
      const at = area.widgets.indexOf(item);
      const output = at < 0 || at >= area.model.length ? undefined : area.model.get(at);
      const still = output && savedStill(output.data, output.metadata);
      if (!output || !still || node.querySelector(`:scope > .${SAVED_CLASS}`)) return;
      // Once shown it stays until there is a view, also while a kernel is asked.
      const expected = !shown && Boolean(this.panel.sessionContext.session?.kernel);
      const place = { mimeType, drawn: node.childElementCount > 0, words: node.textContent ?? '' };
      if (!lacksView(place, output.trusted, expected)) return;
      shown = true;
      const picture = savedPicture(still);
      node.replaceChildren(picture);
      typeset(picture);
    };
    const observer = new MutationObserver(look);
    observer.observe(node, { childList: true });
    renderer.disposed.connect(() => observer.disconnect());
    look();
  }
}
