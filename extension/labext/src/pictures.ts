// The plugin `pygpukit:pictures`: a notebook is saved with the last picture of each live view, not with that of its cell's end, and
// shows it when it is opened again.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { JSONValue } from '@lumino/coreutils';
import { isObject } from './control.js';
import { isInert } from './inert.js';
import { SavedOutputs, type SharedCell } from './saved-outputs.js';
import { isInertMarkdown } from './markdown.js';
import { SavedViews } from './saved-views.js';
import { MARKDOWN, stillIn } from './view-output.js';

const ID = 'pygpukit:pictures';
/** Of a view in the page, when its kernel has sent a still: detail {model, data}. */
const EVENT = 'pygpukit:still';

export const picturesPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Saves the last picture of each live view with the notebook, and shows it where no kernel has the view.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ISettingRegistry],
  activate: (_app: JupyterFrontEnd, tracker: INotebookTracker, settings: ISettingRegistry | null): void => {
    const saved = new SavedOutputs();
    let enabled = true;
    void settings?.load(ID).then((mine) => {
      const apply = (): void => void (enabled = mine.get('lastFrame').composite === true);
      mine.changed.connect(apply);
      apply();
    });
    document.addEventListener(EVENT, (event) => {
      const { detail } = event as CustomEvent<JSONValue>;
      const { model, data } = isObject(detail) ? detail : {};
      const still = isObject(data) ? stillIn(data) : undefined;
      // A notebook that is opened later is trusted with what is put into it here.
      if (typeof model !== 'string' || !still || !(still.kind === MARKDOWN ? isInertMarkdown : isInert)(still.text)) return;
      tracker.forEach((panel) => codeCells(panel).forEach((cell) => saved.keep(cell, model, still)));
    });
    const follow = (panel: NotebookPanel): void => {
      new SavedViews(panel);
      panel.context.saveState.connect((_, state) => {
        if (enabled && state === 'started') codeCells(panel).forEach((cell) => saved.put(cell));
      });
    };
    tracker.forEach(follow);
    tracker.widgetAdded.connect((_, panel) => follow(panel));
  },
};

function codeCells(panel: NotebookPanel): SharedCell[] {
  const cells = [...(panel.content.model?.cells ?? [])].filter(({ type }) => type === 'code');
  return cells.map(({ sharedModel }) => sharedModel as unknown as SharedCell);
}
