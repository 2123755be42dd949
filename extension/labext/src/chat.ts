// The plugin `pygpukit:chat`: what a chat in a notebook needs of the lab, which sets its formulas.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ILatexTypesetter } from '@jupyterlab/rendermime';

/** Of a formula in a view: its element, which holds it between its marks. */
const TYPESET = 'pygpukit:typeset';

export const chatPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:chat',
  description: "Sets the formulas of a chat's answers.",
  autoStart: true,
  optional: [ILatexTypesetter],
  activate: (_app: JupyterFrontEnd, typesetter: ILatexTypesetter | null): void => {
    document.addEventListener(TYPESET, ({ target }) => {
      if (target instanceof HTMLElement) typesetter?.typeset(target);
    });
  },
};
