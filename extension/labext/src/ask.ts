// Questions about cells: "Explain" for any, "Ask about this error" below a %%cuda cell that failed. Each is a %%chat cell, so the notebook's own model answers.

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import { type INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { CATEGORY, CommandIDs, NO_ARGUMENTS } from './commands.js';
import { chipIcon } from './icon.js';
import { questionAbout } from './question.js';

const BUTTON = 'gk-ask-error';

export function addQuestions(app: JupyterFrontEnd, tracker: INotebookTracker, palette: ICommandPalette | null): void {
  app.commands.addCommand(CommandIDs.explainCell, {
    label: 'Explain cell',
    caption: "Ask the notebook's model what the code of this cell does",
    icon: chipIcon,
    describedBy: { args: NO_ARGUMENTS },
    isEnabled: () => tracker.activeCell?.model.type === 'code',
    execute: () => {
      const { currentWidget: panel, activeCell: cell } = tracker;
      if (panel && cell?.model.type === 'code') return ask(panel, cell as CodeCell);
      return undefined;
    },
  });
  app.contextMenu.addItem({ command: CommandIDs.explainCell, selector: '.jp-CodeCell', rank: 30 });
  palette?.addItem({ command: CommandIDs.explainCell, category: CATEGORY });
  const follow = (panel: NotebookPanel): void => {
    panel.content.widgets.forEach((cell) => watch(panel, cell as CodeCell));
    panel.content.model?.cells.changed.connect((_, { type, newIndex, newValues }) => {
      if (type === 'add') panel.content.widgets.slice(newIndex, newIndex + newValues.length).forEach((cell) => watch(panel, cell as CodeCell));
    });
  };
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => follow(panel));
}

/** A cell that failed has a button below its outputs. */
function watch(panel: NotebookPanel, cell: CodeCell): void {
  if (cell.model.type !== 'code') return;
  const check = (): void => {
    const present = cell.outputArea.node.querySelector(`:scope > .${BUTTON}`);
    const shows = isCuda(cell) && errorOf(cell.model) !== '';
    if (shows === (present !== null)) return;
    if (!shows) return present?.remove();
    const button = document.createElement('button');
    button.className = `${BUTTON} jp-Button jp-mod-styled jp-mod-minimal`;
    button.textContent = 'Ask about this error';
    button.addEventListener('click', () => void ask(panel, cell));
    cell.outputArea.node.append(button);
  };
  cell.outputArea.outputLengthChanged.connect(check);
  check();
}

const isCuda = ({ model }: CodeCell): boolean => /^\s*%%cuda\b/.test(model.sharedModel.getSource());

/** What the last error among the outputs says, in plain text; '' for none. */
function errorOf(model: ICodeCellModel): string {
  for (let at = model.outputs.length - 1; at >= 0; at--) {
    const output = model.outputs.get(at).toJSON();
    if (output.output_type !== 'error') continue;
    const lines = output['traceback'];
    const traceback = Array.isArray(lines) ? lines.join('\n') : '';
    return traceback || `${String(output['ename'])}: ${String(output['evalue'])}`;
  }
  return '';
}

/** A cell below that asks, and its run. */
async function ask(panel: NotebookPanel, cell: CodeCell): Promise<void> {
  const { content, sessionContext } = panel;
  const at = content.widgets.indexOf(cell);
  if (at < 0) return;
  content.activeCellIndex = at;
  const question = questionAbout(cell.model.sharedModel.getSource(), errorOf(cell.model));
  NotebookActions.insertBelow(content);
  content.activeCell?.model.sharedModel.setSource(question);
  await NotebookActions.run(content, sessionContext);
}
