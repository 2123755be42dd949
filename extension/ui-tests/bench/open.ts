// How long a notebook of 500 cells takes to open, with the extension and without it, in turn.

import { type Page, test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { percentile, report } from './figures.ts';

const NAME = 'pygpukit';
const CELLS = 500;
const ROUNDS = 9;
const KERNEL = '%%cuda\n// scales\n__global__ void scale(float* x, float a, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= a;\n}';

interface Extension {
  readonly name: string;
}

test('a notebook of 500 cells', async ({ browser }) => {
  const server = await LabServer.start('JupyterLab Light');
  try {
    server.putNotebook('small.ipynb', ['1']);
    server.putNotebook('large.ipynb', Array.from({ length: CELLS }, (_, at) => (at % 2 ? `x = ${at} // 2  # Python` : KERNEL)));
    const pages = { with: await browser.newPage(), without: await browser.newPage() };
    // Both are answered by the test: a page that comes from the server itself draws slower, whatever is in it.
    await configure(pages.with, (extensions) => extensions);
    await configure(pages.without, (extensions) => extensions.filter((one) => one.name !== NAME));
    for (const page of Object.values(pages)) {
      await page.goto(server.notebookUrl('small.ipynb'));
      await page.locator('.jp-NotebookPanel-notebook').waitFor({ timeout: 60_000 });
      await opening(page); // the first one loads code too
    }
    const took: { with: number[]; without: number[] } = { with: [], without: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const which of round % 2 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
        await pages[which].bringToFront();
        took[which].push(await opening(pages[which]));
      }
    }
    const added = took.with.map((one, at) => one - (took.without[at] ?? 0));
    const [withMs, withoutMs] = [percentile(took.with, 0.5), percentile(took.without, 0.5)];
    report('open_500_cells', { cells: CELLS, cuda_cells: CELLS / 2, rounds: ROUNDS, with_p50_ms: withMs, without_p50_ms: withoutMs, added_p50_ms: percentile(added, 0.5) });
  } finally {
    await server.stop();
  }
});

/** The page's lab is told of the extensions that `keep` returns. */
async function configure(page: Page, keep: (extensions: Extension[]) => Extension[]): Promise<void> {
  await page.route('**/lab/tree/**', async (route) => {
    const response = await route.fetch();
    const html = await response.text();
    const found = /(<script id="jupyter-config-data"[^>]*>)([^<]*)/.exec(html);
    if (!found) throw new Error("The lab's page has no configuration.");
    const config = JSON.parse(found[2] ?? '') as { federated_extensions: Extension[] };
    if (!config.federated_extensions.some(({ name }) => name === NAME)) throw new Error(`The lab has no extension ${NAME}: build it, then measure again.`);
    const told = JSON.stringify({ ...config, federated_extensions: keep(config.federated_extensions) });
    await route.fulfill({ response, body: html.replace(found[0], `${found[1]}${told}`) });
  });
}

/** Milliseconds until the notebook is drawn and the page idle; every cell is in the page. */
function opening(page: Page): Promise<number> {
  return page.evaluate(async (cells) => {
    type Panel = { revealed: Promise<void>; context: { ready: Promise<void>; save(): Promise<void> }; node: HTMLElement; isDisposed: boolean; close(): void };
    const began = performance.now();
    const panel = (await window.jupyterapp.commands.execute('docmanager:open', { path: 'large.ipynb' })) as Panel;
    await Promise.all([panel.revealed, panel.context.ready]);
    const drawn = (): number => panel.node.querySelectorAll('.jp-Cell .cm-content').length;
    while (drawn() < cells) {
      if (performance.now() - began > 60_000) throw new Error(`Only ${drawn()} of ${cells} cells were drawn in a minute.`);
      await new Promise((done) => requestAnimationFrame(done));
    }
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const took = performance.now() - began;
    await panel.context.save(); // the kernel's name was written into it, and a changed notebook asks before it closes
    panel.close();
    await new Promise((done) => setTimeout(done, 300));
    if (!panel.isDisposed) throw new Error(`The notebook stays open: the next round would only show it again.`);
    return took;
  }, CELLS);
}
