// The launcher's cards: a new notebook that knows the GPU, with the workbench beside it; and one that begins with a chat.

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ILauncher } from '@jupyterlab/launcher';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { CommandIDs } from './commands.js';
import { chipIcon } from './icon.js';

const FIRST_CELL = 'import pygpukit as gp\n\n%load_ext pygpukit\n%gpu';
// Not run by itself: the first time it fetches what the comment says.
const CHAT_CELL = 'import pygpukit as gp\n\ngp.llm.chat("qwen2.5-coder-0.5b-instruct")  # fetched once, 469 MiB';
const ARGUMENTS = {
  type: 'object',
  properties: { cwd: { type: 'string', description: 'The folder of the new notebook.' } },
  additionalProperties: true, // the launcher has its own
};

export function addLauncherCard(app: JupyterFrontEnd, launcher: ILauncher | null): void {
  app.commands.addCommand(CommandIDs.newWorkbench, {
    label: 'GPU workbench',
    caption: "Make a notebook with pygpukit loaded, and the GPU's memory and scheduler beside it",
    icon: chipIcon,
    describedBy: { args: ARGUMENTS },
    execute: async ({ cwd }) => {
      const panel = await notebookWith(app, FIRST_CELL, cwd);
      await app.commands.execute('notebook:run-cell-and-insert-below');
      await app.commands.execute(CommandIDs.openWorkbench);
      return panel; // which the launcher makes room for
    },
  });
  app.commands.addCommand(CommandIDs.newChat, {
    label: 'Chat with a model',
    caption: 'Make a notebook whose first cell is a chat with a small model that knows code',
    icon: chipIcon,
    describedBy: { args: ARGUMENTS },
    execute: ({ cwd }) => notebookWith(app, CHAT_CELL, cwd),
  });
  const kernelIconUrl = `data:image/svg+xml,${encodeURIComponent(chipIcon.svgstr)}`;
  launcher?.add({ command: CommandIDs.newWorkbench, category: 'Notebook', rank: 1, kernelIconUrl });
  launcher?.add({ command: CommandIDs.newChat, category: 'Notebook', rank: 2, kernelIconUrl });
}

/** A new notebook with this in its first cell, and its kernel ready. */
async function notebookWith(app: JupyterFrontEnd, source: string, cwd: unknown): Promise<NotebookPanel> {
  const kernelName = await pythonKernel(app);
  const panel = (await app.commands.execute('notebook:create-new', { cwd: (cwd as string | undefined) ?? '', kernelName })) as NotebookPanel;
  await panel.context.ready;
  await panel.sessionContext.ready;
  panel.content.activeCell?.model.sharedModel.setSource(source);
  return panel;
}

/** The lab's default kernel if that is Python, else the first one that is. */
async function pythonKernel(app: JupyterFrontEnd): Promise<string> {
  const { kernelspecs } = app.serviceManager;
  await kernelspecs.ready;
  const specs = Object.values(kernelspecs.specs?.kernelspecs ?? {}).filter((one) => one?.language === 'python');
  const chosen = specs.find((one) => one?.name === kernelspecs.specs?.default) ?? specs[0];
  if (!chosen) throw new Error('The server has no Python kernel: install ipykernel where pygpukit is installed.');
  return chosen.name;
}
