// The plugin `pygpukit:status`: how the GPU of the notebook's kernel is, in the status bar, in a dialog, in the Running tab.

import { ILabShell, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, Notification, showDialog } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';
import { staysBusy } from './busy.js';
import { CATEGORY, CommandIDs, NO_ARGUMENTS } from './commands.js';
import { request } from './control.js';
import { shortText, StatusFeed } from './feed.js';
import { chipIcon } from './icon.js';
import { StatusItem } from './item.js';
import { statusBody } from './report.js';
import { addRunning } from './running.js';
import { ICudaCells } from './tokens.js';
import { openAsked } from './views.js';

const ID = 'pygpukit:status';

export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: "Shows the GPU status of the current notebook's kernel.",
  autoStart: true,
  requires: [INotebookTracker, ICudaCells],
  // Optional, so that the plugin also starts where there is no lab shell, status bar or list of running kernels.
  optional: [ILabShell, ICommandPalette, IStatusBar, IRunningSessionManagers, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    cuda: ICudaCells,
    labShell: ILabShell | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    running: IRunningSessionManagers | null,
    settings: ISettingRegistry | null,
  ): void => {
    app.commands.addCommand(CommandIDs.showStatus, {
      label: 'Show GPU status',
      caption: "Ask the notebook's kernel which GPU it uses and what is on it, also while a cell runs",
      icon: chipIcon,
      describedBy: { args: NO_ARGUMENTS },
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
    palette?.addItem({ command: CommandIDs.showStatus, category: CATEGORY });
    tracker.forEach(staysBusy);
    tracker.widgetAdded.connect((_, panel) => staysBusy(panel));
    const feed = new StatusFeed(tracker, cuda.reports, (panel, asked) => void openAsked(app, panel, asked));
    if (running) addRunning(app, running, tracker, feed);
    void settings?.load(ID).then((mine) => {
      const apply = (): void => feed.setEnabled(mine.get('live').composite === true);
      mine.changed.connect(apply);
      apply();
    });
    const changed = new Signal<JupyterFrontEnd, void>(app);
    tracker.currentChanged.connect(() => changed.emit());
    labShell?.currentChanged.connect(() => changed.emit());
    const item = new StatusItem(() => void app.commands.execute(CommandIDs.openWorkbench));
    feed.changed.connect(() => {
      const state = feed.of(tracker.currentWidget);
      item.setText(shortText(state), typeof state?.['line'] === 'string' ? state['line'] : '');
    });
    statusBar?.registerStatusItem(ID, {
      item,
      align: 'left',
      rank: 900,
      isActive: () => tracker.currentWidget !== null && tracker.currentWidget === app.shell.currentWidget,
      activeStateChanged: changed,
    });
  },
};
