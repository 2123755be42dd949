// The plugin `pygpukit:status`: a command and a status-bar item that ask the notebook's kernel how its GPU is.

import { ILabShell, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, Notification, showDialog } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';
import { request } from './control.js';
import { StatusItem } from './item.js';
import { statusBody } from './report.js';

namespace CommandIDs {
  /** Ask the current notebook's kernel for its GPU status and show the answer. */
  export const showStatus = 'pygpukit:show-status';
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:status',
  description: "Shows the GPU status of the current notebook's kernel.",
  autoStart: true,
  requires: [INotebookTracker],
  // Optional, so that the plugin also starts where there is no lab shell or status bar.
  optional: [ILabShell, ICommandPalette, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    labShell: ILabShell | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
  ): void => {
    app.commands.addCommand(CommandIDs.showStatus, {
      label: 'Show GPU status',
      caption: "Ask the notebook's kernel which GPU it uses and what is on it, also while a cell runs",
      describedBy: { args: { type: 'object', properties: {}, additionalProperties: false } },
      isEnabled: () => tracker.currentWidget !== null,
      execute: async () => {
        const kernel = tracker.currentWidget?.sessionContext.session?.kernel;
        if (!kernel) {
          Notification.warning('This notebook has no kernel: start one, then ask for the GPU status again.');
          return;
        }
        try {
          const status = await request(kernel, 'status');
          await showDialog({ title: 'GPU status', body: statusBody(status), buttons: [Dialog.okButton({ label: 'Close' })] });
        } catch (error) {
          Notification.error(error instanceof Error ? error.message : String(error), { autoClose: 8000 });
        }
      },
    });
    palette?.addItem({ command: CommandIDs.showStatus, category: 'pygpukit' });
    const changed = new Signal<JupyterFrontEnd, void>(app);
    tracker.currentChanged.connect(() => changed.emit());
    labShell?.currentChanged.connect(() => changed.emit());
    statusBar?.registerStatusItem('pygpukit:status', {
      item: new StatusItem(() => void app.commands.execute(CommandIDs.showStatus)),
      align: 'left',
      rank: 900,
      isActive: () => tracker.currentWidget !== null && tracker.currentWidget === app.shell.currentWidget,
      activeStateChanged: changed,
    });
  },
};

export default plugin;
