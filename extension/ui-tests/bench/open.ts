// What the extension adds to the opening of a notebook of 500 cells: pairs of openings, with it and with it disabled.
//
// One opening differs from the next by more than what is looked for, and its wall time by what else the machine does. So processor
// time of the page's main thread is compared (wall time stands beside it), in turn, after a collected heap, in several pages of each
// kind, because each page has its own place in memory and its own compiled code. The notebook is saved with its language and its
// kernel runs: its start is no part of an opening. The server, the lab's looks at the folder and its saving take what they take with
// the extension and without, and next to nothing of the page's thread.

import { type CDPSession, type Page, test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { added, percentile, report } from './figures.ts';

const NAME = 'pygpukit';
const CELLS = 500;
const MEASURE_MS = 220_000; // no two pages are loaded after that
const PAIRS = 5; // in each two pages
const QUIET_MS = 1200; // CodeMirror looks for what scrolls an editor a second after it came in sight
const KERNEL = '%%cuda\n// scales\n__global__ void scale(float* x, float a, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= a;\n}';
/** Milliseconds of the main thread, in all and of what; `process` is all threads of the page, to 10 ms. */
const COUNTERS = { cpu: 'TaskDuration', style: 'RecalcStyleDuration', layout: 'LayoutDuration', process: 'ProcessTime' } as const;

type Which = 'with' | 'without';
type Opening = Record<keyof typeof COUNTERS | 'wall', number>;

/** The parts of the lab that are used here only. */
interface App {
  hasPlugin(id: string): boolean;
  readonly commands: { execute(id: string, args: object): Promise<Panel> };
}

interface Panel {
  readonly revealed: Promise<void>;
  readonly context: { readonly ready: Promise<void>; save(): Promise<void> };
  readonly content: { readonly codeMimetype: string };
  readonly sessionContext: { readonly ready: Promise<void>; readonly session: { readonly kernel: { readonly info: Promise<unknown> } } };
  readonly node: HTMLElement;
  readonly isDisposed: boolean;
  close(): void;
}

interface Loaded {
  readonly page: Page;
  readonly devtools: CDPSession;
}

test('a notebook of 500 cells', async ({ browser }) => {
  test.setTimeout(1_800_000); // a busy machine is slow, and the least that is measured is two pages of each kind
  const server = await LabServer.start('JupyterLab Light');
  const load = async (which: Which): Promise<Loaded> => {
    server.disable(...(which === 'without' ? [NAME] : []));
    const page = await browser.newPage();
    await page.goto(server.notebookUrl('small.ipynb'));
    await page.locator('.jp-NotebookPanel-notebook').waitFor({ timeout: 60_000 });
    const active = await page.evaluate((name) => (window.jupyterapp as unknown as App).hasPlugin(`${name}:editor`), NAME);
    if (active !== (which === 'with')) throw new Error(`The extension is ${active ? '' : 'not '}active in the page: build it, then measure again.`);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
    await opening({ page, devtools }); // loads code and, the first time, starts the kernel and writes its language into the file
    return { page, devtools };
  };
  try {
    server.putNotebook('small.ipynb', ['1']);
    server.putNotebook('large.ipynb', Array.from({ length: CELLS }, (_, at) => (at % 2 ? `x = ${at} // 2  # Python` : KERNEL)));
    const measured: Record<Which, Opening[]> = { with: [], without: [] };
    const byPages: number[] = [];
    for (const began = Date.now(); byPages.length < 2 || Date.now() - began < MEASURE_MS; ) {
      const order = (turn: number): readonly Which[] => (turn % 2 ? ['with', 'without'] : ['without', 'with']);
      const loaded = {} as Record<Which, Loaded>;
      for (const which of order(byPages.length)) loaded[which] = await load(which);
      for (let pair = 0; pair < PAIRS; pair++) {
        for (const which of order(byPages.length + pair)) {
          measured[which].push(await opening(loaded[which]));
        }
      }
      byPages.push(percentile(measured.with.slice(-PAIRS).map((one, at) => one.cpu - (measured.without.at(at - PAIRS)?.cpu ?? NaN)), 0.5));
      for (const { page } of Object.values(loaded)) await page.context().close();
    }
    const kinds = [...(Object.keys(COUNTERS) as (keyof Opening)[]), 'wall'] as const;
    const of = (which: Which, kind: keyof Opening): number[] => measured[which].map((one) => one[kind]);
    report('open_500_cells', {
      cells: CELLS,
      cuda_cells: CELLS / 2,
      pages: byPages.length,
      pairs: measured.with.length,
      ...Object.assign({}, ...kinds.map((kind) => added(kind, of('with', kind), of('without', kind)))),
      cpu_added_p50_ms_by_pages: byPages.join(', '),
    });
  } finally {
    await server.stop();
  }
});

/** Opens the notebook and closes it again: milliseconds of the wall until it is drawn and its kernel has answered, of the processor until it is quiet. */
async function opening({ page, devtools }: Loaded): Promise<Opening> {
  await page.bringToFront();
  await devtools.send('HeapProfiler.collectGarbage');
  const before = await counters(devtools);
  const opened = await page.evaluateHandle(
    async ({ cells, quiet }) => {
      const began = performance.now();
      const panel = await (window.jupyterapp as unknown as App).commands.execute('docmanager:open', { path: 'large.ipynb' });
      await Promise.all([panel.revealed, panel.context.ready]);
      const drawn = (): number => panel.node.querySelectorAll('.jp-Cell .cm-content').length;
      while (drawn() < cells) {
        if (performance.now() - began > 60_000) throw new Error(`Only ${drawn()} of ${cells} cells were drawn in a minute.`);
        await new Promise((done) => requestAnimationFrame(done));
      }
      await panel.sessionContext.ready;
      await panel.sessionContext.session.kernel.info;
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      const took = performance.now() - began;
      await new Promise((done) => setTimeout(done, quiet));
      if (panel.content.codeMimetype !== 'text/x-ipython') throw new Error(`The cells are ${panel.content.codeMimetype}: the kernel has not told its language.`);
      return { panel, took };
    },
    { cells: CELLS, quiet: QUIET_MS },
  );
  const after = await counters(devtools);
  const wall = await opened.evaluate(async ({ panel, took }) => {
    await panel.context.save(); // what the kernel is was written into it, and a changed notebook asks before it closes
    panel.close();
    await new Promise((done) => setTimeout(done, 300));
    if (!panel.isDisposed) throw new Error('The notebook stays open: the next round would only show it again.');
    return took;
  });
  const spent = Object.entries(COUNTERS).map(([name, counter]) => [name, 1000 * ((after[counter] ?? NaN) - (before[counter] ?? NaN))]);
  return { ...(Object.fromEntries(spent) as Opening), wall };
}

async function counters(devtools: CDPSession): Promise<Record<string, number>> {
  const { metrics } = await devtools.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}
