// What every test file of the lab needs: a server with its notebooks and one page on it, taken down again, and no fault left unsaid.

import { expect, test } from '@playwright/test';
import { Cells } from './cells.ts';
import { type App, LabServer } from './lab-server.ts';
import { NotebookPage } from './notebook-page.ts';

interface Options {
  /** The text of the cells of each notebook that is written before the first test. */
  readonly notebooks?: Readonly<Record<string, readonly string[]>>;
  /** Of the server's addresses, as behind a hub. */
  readonly prefix?: string;
  readonly app?: App;
  /** What jupyter_server_config.json says. */
  readonly config?: object;
  /** Faults that are the application's own, also without the extension. */
  readonly known?: readonly (string | RegExp)[];
}

export interface Lab {
  readonly server: LabServer;
  readonly notebook: NotebookPage;
  readonly cells: Cells;
  /** Opens one of the server's notebooks in a fresh layout and runs these of its cells, each to its end. */
  open(name: string, ...cells: readonly number[]): Promise<void>;
}

/** The lab of a test file; it is there once the first test begins. */
export function useLab({ notebooks = {}, prefix = '/', app = 'jupyterlab', config = {}, known = [] }: Options): Lab {
  const parts: { server?: LabServer; notebook?: NotebookPage; cells?: Cells } = {};
  const open = async (name: string, ...cells: readonly number[]): Promise<void> => {
    await lab.notebook.open(lab.server.notebookUrl(name));
    for (const at of cells) await lab.cells.run(at);
  };
  const lab = Object.assign(parts, { open }) as Lab;

  test.beforeAll(async ({ browser }) => {
    parts.server = await LabServer.start('JupyterLab Light', prefix, app, config);
    for (const [name, sources] of Object.entries(notebooks)) parts.server.putNotebook(name, sources);
    parts.notebook = new NotebookPage(await browser.newPage());
    parts.cells = new Cells(parts.notebook.page);
  });

  test.afterAll(async () => {
    await parts.notebook?.page.close();
    await parts.server?.stop();
  });

  test.afterEach(async ({}, info) => {
    if (info.status !== info.expectedStatus) await parts.notebook?.page.screenshot({ path: info.outputPath('notebook.png') });
    const expected = (fault: string): boolean => known.some((one) => (typeof one === 'string' ? one === fault : one.test(fault)));
    expect(parts.notebook?.faults.splice(0).filter((fault) => !expected(fault))).toEqual([]);
  });

  return lab;
}
