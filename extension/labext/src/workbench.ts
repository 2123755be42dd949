// The plugin `pygpukit:workbench`: one command that puts the notebook's dashboards and the assembly beside the notebook.

import { ILabShell, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';
import { CATEGORY, CommandIDs, NO_ARGUMENTS } from './commands.js';
import { chipIcon } from './icon.js';
import { cudaCells } from './reports.js';

const DASHBOARD = '.gk-panel'; // what a dashboard's view is made of

export const workbenchPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:workbench',
  description: 'Arranges notebook, dashboards and assembly with one command.',
  autoStart: true,
  requires: [INotebookTracker, ILabShell],
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, tracker: INotebookTracker, shell: ILabShell, palette: ICommandPalette | null): void => {
    app.commands.addCommand(CommandIDs.openWorkbench, {
      label: 'Open GPU workbench',
      caption: "Put the notebook's dashboards, and the code of its CUDA kernels, in a column beside the notebook",
      icon: chipIcon,
      describedBy: { args: NO_ARGUMENTS },
      isEnabled: () => tracker.currentWidget !== null,
      execute: async () => {
        const notebook = tracker.currentWidget;
        if (!notebook) return;
        const column = await dashboards(app, shell, notebook);
        if (cudaCells(notebook).length) column.push((await app.commands.execute(CommandIDs.openAssembly)) as Widget);
        if (!column.length) {
          Notification.info('This notebook shows no dashboard and has no %%cuda cell: run a cell with either, then open the workbench.');
        }
        column.forEach((widget, at) => {
          const above = column[at - 1];
          shell.add(widget, 'main', above ? { mode: 'split-bottom', ref: above.id } : { mode: 'split-right', ref: notebook.id });
        });
        shell.activateById(notebook.id);
      },
    });
    palette?.addItem({ command: CommandIDs.openWorkbench, category: CATEGORY });
  },
};

/** A view of its own for each cell that shows a dashboard; one that has a view is not given another. */
async function dashboards(app: JupyterFrontEnd, shell: ILabShell, notebook: NotebookPanel): Promise<Widget[]> {
  const made: Widget[] = [];
  const open = [...shell.widgets('main')].filter(({ node, id }) => id !== notebook.id && node.querySelector(DASHBOARD));
  const titles = new Set(open.flatMap(({ node }) => [...node.querySelectorAll(DASHBOARD)].map((one) => one.getAttribute('aria-label'))));
  for (const [at, cell] of notebook.content.widgets.entries()) {
    const found = cell instanceof CodeCell ? cell.outputArea.node.querySelector(DASHBOARD) : null;
    if (!found || titles.has(found.getAttribute('aria-label'))) continue;
    titles.add(found.getAttribute('aria-label'));
    notebook.content.activeCellIndex = at;
    const before = new Set(shell.widgets('main'));
    await app.commands.execute('notebook:create-output-view');
    made.push(...[...shell.widgets('main')].filter((widget) => !before.has(widget)));
  }
  return made;
}
