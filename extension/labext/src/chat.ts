// The plugin `pygpukit:chat`: what a chat in a notebook needs of the lab, which sets its formulas, and questions about cells.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ILatexTypesetter } from '@jupyterlab/rendermime';
import { addQuestions } from './ask.js';

/** Of a formula in a view: its element, which holds it between its marks. */
const TYPESET = 'pygpukit:typeset';

export const chatPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:chat',
  description: "Sets the formulas of a chat's answers, and asks about cells.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ILatexTypesetter, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    typesetter: ILatexTypesetter | null,
    palette: ICommandPalette | null,
  ): void => {
    addQuestions(app, tracker, palette);
    document.addEventListener(TYPESET, ({ target }) => {
      if (target instanceof HTMLElement) typesetter?.typeset(target);
    });
  },
};
