// The plugin `pygpukit:assembly`: the pane with PTX and SASS, by command and from the notebook's toolbar.

import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { AssemblyPane } from './assembly-pane.js';
import { AssemblyView } from './assembly-view.js';
import { addToColumn, PANE_ID } from './column.js';
import { CATEGORY, CommandIDs, NO_ARGUMENTS } from './commands.js';
import { chipIcon } from './icon.js';
import { hasCuda } from './reports.js';
import { ICudaCells } from './tokens.js';

export const assemblyPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:assembly',
  description: 'Shows PTX and SASS beside the %%cuda cell that they come from.',
  autoStart: true,
  requires: [INotebookTracker, ICudaCells],
  optional: [ILabShell, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    cuda: ICudaCells,
    labShell: ILabShell | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
  ): void => {
    const panes = new WidgetTracker<MainAreaWidget<AssemblyPane>>({ namespace: 'pygpukit-assembly' });
    app.commands.addCommand(CommandIDs.openAssembly, {
      label: 'Show PTX and SASS',
      caption: "Open the compiled code of this notebook's CUDA kernels beside their cells",
      icon: chipIcon,
      describedBy: { args: NO_ARGUMENTS },
      isVisible: () => tracker.currentWidget !== null && hasCuda(tracker.currentWidget),
      execute: async () => {
        let pane = panes.currentWidget;
        if (!pane) {
          const content = new AssemblyView(tracker, cuda).pane;
          pane = new MainAreaWidget({ content });
          pane.id = `${PANE_ID}assembly`;
          pane.title.label = 'PTX and SASS';
          pane.title.icon = chipIcon;
          pane.title.closable = true;
          await panes.add(pane);
        }
        if (!pane.isAttached) {
          // A shell without a dock area has a side area only.
          if (labShell) addToColumn(labShell, tracker.currentWidget, pane);
          else app.shell.add(pane, 'right');
        }
        app.shell.activateById(pane.id);
        return pane;
      },
    });
    palette?.addItem({ command: CommandIDs.openAssembly, category: CATEGORY });
    const update = (): void => app.commands.notifyCommandChanged(CommandIDs.openAssembly);
    tracker.currentChanged.connect(update);
    tracker.activeCellChanged.connect(update);
    cuda.reports.changed.connect(update);
    if (labShell && restorer) void restorer.restore(panes, { command: CommandIDs.openAssembly, name: () => 'pane' });
  },
};
