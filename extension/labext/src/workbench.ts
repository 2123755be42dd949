// The plugin `pygpukit:workbench`: one command that puts memory, scheduler and assembly beside the notebook, and the launcher's card.

import { ILabShell, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { CATEGORY, CommandIDs, NO_ARGUMENTS } from './commands.js';
import { chipIcon } from './icon.js';
import { addLauncherCard } from './launcher.js';
import { hasCuda } from './reports.js';

const VIEWS = ['memory', 'scheduler'];

export const workbenchPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:workbench',
  description: 'Arranges notebook, dashboards and assembly with one command.',
  autoStart: true,
  requires: [INotebookTracker],
  // Optional, or Notebook would report a plugin that failed to start.
  optional: [ILabShell, ICommandPalette, ILauncher],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    shell: ILabShell | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
  ): void => {
    if (!shell) return; // one notebook a page: there is no room beside it
    app.commands.addCommand(CommandIDs.openWorkbench, {
      label: 'Open GPU workbench',
      caption: 'Put memory, scheduler, and the code of the CUDA kernels, in a column beside the notebook',
      icon: chipIcon,
      describedBy: { args: NO_ARGUMENTS },
      isEnabled: () => tracker.currentWidget !== null,
      execute: async () => {
        const notebook = tracker.currentWidget;
        if (!notebook) return;
        const open = async (): Promise<void> => {
          for (const view of VIEWS) await app.commands.execute(CommandIDs.openView, { view, path: notebook.context.path });
        };
        await open();
        if (hasCuda(notebook)) {
          await app.commands.execute(CommandIDs.openAssembly);
          await open(); // in front, where the code became a tab
        }
        shell.activateById(notebook.id);
      },
    });
    palette?.addItem({ command: CommandIDs.openWorkbench, category: CATEGORY });
    addLauncherCard(app, launcher);
  },
};
