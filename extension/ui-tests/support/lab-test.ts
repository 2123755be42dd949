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
}

/** The lab of a test file; it is there once the first test begins. */
export function useLab({ notebooks = {}, prefix = '/', app = 'jupyterlab', config = {}, known = [] }: Options): Lab {
  const lab: { server?: LabServer; notebook?: NotebookPage; cells?: Cells } = {};

  test.beforeAll(async ({ browser }) => {
    lab.server = await LabServer.start('JupyterLab Light', prefix, app, config);
    for (const [name, sources] of Object.entries(notebooks)) lab.server.putNotebook(name, sources);
    lab.notebook = new NotebookPage(await browser.newPage());
    lab.cells = new Cells(lab.notebook.page);
  });

  test.afterAll(async () => {
    await lab.notebook?.page.close();
    await lab.server?.stop();
  });

  test.afterEach(async ({}, info) => {
    if (info.status !== info.expectedStatus) await lab.notebook?.page.screenshot({ path: info.outputPath('notebook.png') });
    const expected = (fault: string): boolean => known.some((one) => (typeof one === 'string' ? one === fault : one.test(fault)));
    expect(lab.notebook?.faults.splice(0).filter((fault) => !expected(fault))).toEqual([]);
  });

  return lab as Lab;
}
