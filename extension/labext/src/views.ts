// The plugin `pygpukit:views`: one dashboard beside the notebook, by command, at the kernel's request, and after a reload.

import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, Notification, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import { type JSONObject, UUID } from '@lumino/coreutils';
import { markCells } from './cell-ids.js';
import { addToColumn, PANE_ID } from './column.js';
import { CATEGORY, CommandIDs } from './commands.js';
import { DashboardPane } from './dashboard-pane.js';
import { tellEnded } from './ended.js';
import { chipIcon } from './icon.js';
import { insertCells } from './insert-cell.js';
import { ICudaCells } from './tokens.js';

// Of pygpukit/jupyter/widgets.json: the build puts it in.
declare const DASHBOARDS: string[];
const ARGUMENTS = {
  type: 'object',
  properties: {
    view: { enum: DASHBOARDS, description: 'Which dashboard.' },
    path: { type: 'string', description: 'Of the notebook; the current one where it is absent.' },
    model: { type: 'string', description: "Of the dashboard's widget; the kernel is asked where it is absent." },
    key: { type: 'string', description: 'What the lab knows a new pane by after a reload, whatever the notebook is called then.' },
  },
  required: ['view'],
  additionalProperties: false,
};

export const viewsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pygpukit:views',
  description: 'Shows live dashboards beside the notebook.',
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
    const panes = new WidgetTracker<MainAreaWidget<DashboardPane>>({ namespace: 'pygpukit-views' });
    const follow = (panel: NotebookPanel): void => {
      tellEnded(panel);
      markCells(panel);
    };
    tracker.forEach(follow);
    tracker.widgetAdded.connect((_, panel) => follow(panel));
    insertCells(tracker);
    let count = 0;
    app.commands.addCommand(CommandIDs.openView, {
      label: ({ view }) => (typeof view === 'string' ? `Open GPU ${view}` : 'Open GPU dashboard'),
      caption: "Show a live dashboard of the notebook's kernel in a column beside the notebook",
      icon: chipIcon,
      describedBy: { args: ARGUMENTS },
      isEnabled: ({ path }) => typeof path === 'string' || tracker.currentWidget !== null,
      execute: async (args) => {
        const { view, path = tracker.currentWidget?.context.path, model, key = UUID.uuid4() } = args as Partial<Record<string, string>>;
        if (!view || !DASHBOARDS.includes(view)) throw new Error(`There is no GPU dashboard "${view}": it is one of ${DASHBOARDS.join(', ')}.`);
        if (path === undefined) throw new Error('No notebook is open: open one, then its dashboards can be shown.');
        let pane = panes.find(({ content }) => content.view === view && content.path === path);
        if (pane) {
          if (!pane.content.live) void pane.content.load(model);
        } else {
          const opened = (pane = new MainAreaWidget({ content: new DashboardPane(tracker, cuda.reports, view, path, key, model) }));
          opened.id = `${PANE_ID}${view}-${++count}`;
          Object.assign(opened.title, { label: `GPU ${view}`, caption: path, icon: chipIcon, closable: true });
          opened.content.moved.connect(({ path: now }) => {
            opened.title.caption = now;
            void panes.save(opened);
          });
          await panes.add(opened);
        }
        if (!pane.isAttached) {
          // A shell without a dock area has a side area only.
          if (labShell) addToColumn(labShell, tracker.find(({ context }) => context.path === path) ?? null, pane);
          else app.shell.add(pane, 'right');
        }
        app.shell.activateById(pane.id);
        return pane;
      },
    });
    for (const view of DASHBOARDS) palette?.addItem({ command: CommandIDs.openView, category: CATEGORY, args: { view } });
    if (labShell && restorer) {
      void restorer.restore(panes, {
        command: CommandIDs.openView,
        args: ({ content: { view, path, key } }) => ({ view, path, key }),
        name: ({ content: { view, key } }) => `${view}:${key}`,
      });
    }
  },
};

/** What gp.lab.open() asks for; the cursor stays in the notebook. */
export async function openAsked(app: JupyterFrontEnd, panel: NotebookPanel, asked: JSONObject): Promise<void> {
  const { open, model } = asked;
  try {
    if (open === 'workbench') await app.commands.execute(CommandIDs.openWorkbench);
    else if (open === 'assembly') await app.commands.execute(CommandIDs.openAssembly);
    else await app.commands.execute(CommandIDs.openView, { view: String(open), path: panel.context.path, model: String(model) });
    app.shell.activateById(panel.id);
  } catch (error) {
    Notification.error(error instanceof Error ? error.message : String(error), { autoClose: 8000 });
  }
}
