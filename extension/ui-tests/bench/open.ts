// What the extension adds to the opening of a notebook of 500 cells: pairs of openings, with it and with it disabled.
//
// One opening differs from the next by far more than what is looked for: by what else the machine does, and by which pages of memory
// it was given. So the whole is not compared, but the ways by which an extension costs an opening anything, each as sharp as it can be:
// its own functions with all that they call (sampled), the parsing and colouring of another language (sampled, with and without), and
// style and layout, which are counted with and without and priced alike. The notebook is saved with its language and its
// kernel runs: its start is no part of an opening. The server, the lab's looks at the folder and its saving take what they take with
// the extension and without, and next to nothing of the page's thread.

import { type CDPSession, type Page, test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { added, differences, median, percentile, report } from './figures.ts';
import { drawnMore, type Profile, type Spent, spent, type TraceEvent } from './spent.ts';

const NAME = 'pygpukit';
const FILES = `/extensions/${NAME}/`; // part of the addresses of its functions
const CELLS = 500;
const MEASURE_MS = 220_000; // no two pages are loaded after that
const PAIRS = 5; // in each two pages
const SAMPLE_US = 200;
const QUIET_MS = 1200; // CodeMirror looks for what scrolls an editor a second after it came in sight
const KERNEL = '%%cuda\n// scales\n__global__ void scale(float* x, float a, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= a;\n}';

type Which = 'with' | 'without';
/** Milliseconds: of the main thread's processor, of the wall until all is drawn. */
type Opening = Spent & { readonly cpu: number; readonly wall: number };

/** The parts of the lab that are used here only. */
interface App {
  hasPlugin(id: string): boolean;
  readonly commands: { execute(id: string, args: object): Promise<Panel> };
  readonly shell: { activateById(id: string): void };
}

interface Panel {
  readonly id: string;
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
    await page.goto(server.notebookUrl(`${which}.ipynb`));
    await page.locator('.jp-NotebookPanel-notebook').waitFor({ timeout: 60_000 });
    const active = await page.evaluate((name) => (window.jupyterapp as unknown as App).hasPlugin(`${name}:editor`), NAME);
    if (active !== (which === 'with')) throw new Error(`The extension is ${active ? '' : 'not '}active in the page: build it, then measure again.`);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
    await devtools.send('Profiler.enable');
    await devtools.send('Profiler.setSamplingInterval', { interval: SAMPLE_US });
    await opening({ page, devtools }); // loads code and, the first time, starts the kernel and writes its language into the file
    return { page, devtools };
  };
  try {
    // One for each page: of two that save one file the second asks in a dialog, which keeps the focus from then on.
    for (const which of ['with', 'without']) server.putNotebook(`${which}.ipynb`, ['1']);
    server.putNotebook('large.ipynb', Array.from({ length: CELLS }, (_, at) => (at % 2 ? `x = ${at} // 2  # Python` : KERNEL)));
    const measured: Record<Which, Opening[]> = { with: [], without: [] };
    let pages = 0;
    for (const began = Date.now(); pages < 2 || Date.now() - began < MEASURE_MS; pages++) {
      const order = (turn: number): readonly Which[] => (turn % 2 ? ['with', 'without'] : ['without', 'with']);
      const loaded = {} as Record<Which, Loaded>;
      for (const which of order(pages)) loaded[which] = await load(which);
      for (let pair = 0; pair < PAIRS; pair++) {
        for (const which of order(pages + pair)) measured[which].push(await opening(loaded[which]));
      }
      for (const { page } of Object.values(loaded)) await page.context().close();
    }
    report('open_500_cells', { cells: CELLS, cuda_cells: CELLS / 2, pages, ...figures(measured) });
  } finally {
    await server.stop();
  }
});

/** The parts and their sum, in milliseconds, with what holds the medians of the pairs with at least 95 %. */
function figures(measured: Record<Which, readonly Opening[]>): Record<string, number> {
  const of = (which: Which, kind: 'own' | 'language' | 'cpu' | 'wall'): number[] => measured[which].map((one) => one[kind]);
  const own = of('with', 'own');
  if (percentile(own, 0) === 0) throw new Error(`No function of ${FILES} was seen in an opening: the addresses of the extension have changed.`);
  if (percentile([...of('with', 'language'), ...of('without', 'language')], 0) === 0) throw new Error('No parsing was seen in an opening: the names of CodeMirror have changed.');
  const language = differences(of('with', 'language'), of('without', 'language'));
  const drawn = drawnMore(measured.with, measured.without);
  const counted = (which: Which, kind: 'times' | 'objects', what: string): number =>
    percentile(measured[which].map(({ drawn: all }) => [...all].reduce((sum, [place, one]) => sum + (place.startsWith(what) ? one[kind] : 0), 0)), 0.5);
  const sum = own.map((ms, at) => ms + (language[at] ?? NaN) + (drawn[at] ?? NaN));
  return {
    pairs: own.length,
    ...median('added', sum),
    ...median('own_added', own),
    ...added('language', of('with', 'language'), of('without', 'language')),
    ...median('drawn_added', drawn),
    ...Object.fromEntries(
      (['with', 'without'] as const).flatMap((which) => [
        [`styles_${which}`, counted(which, 'times', 'UpdateLayoutTree')],
        [`styled_elements_${which}`, counted(which, 'objects', 'UpdateLayoutTree')],
        [`layouts_${which}`, counted(which, 'times', 'Layout')],
        [`laid_out_boxes_${which}`, counted(which, 'objects', 'Layout')],
      ]),
    ),
    ...added('cpu', of('with', 'cpu'), of('without', 'cpu')),
    ...added('wall', of('with', 'wall'), of('without', 'wall')),
  };
}

/** Opens the notebook and closes it again: milliseconds of the wall until it is drawn and its kernel has answered, of the processor until it is quiet. */
async function opening({ page, devtools }: Loaded): Promise<Opening> {
  await page.bringToFront();
  await devtools.send('HeapProfiler.collectGarbage');
  const recorded = await record(devtools);
  const before = await processor(devtools);
  const opened = await page.evaluateHandle(
    async ({ cells, quiet }) => {
      const began = performance.now();
      const { commands, shell } = window.jupyterapp as unknown as App;
      const panel = await commands.execute('docmanager:open', { path: 'large.ipynb' });
      await Promise.all([panel.revealed, panel.context.ready]);
      // Without the focus the lab spares itself three looks at the style of the whole page.
      const focused = (): boolean => panel.node.contains(document.activeElement);
      if (!focused()) shell.activateById(panel.id);
      const drawn = (): number => panel.node.querySelectorAll('.jp-Cell .cm-content').length;
      while (drawn() < cells || !focused()) {
        if (performance.now() - began > 60_000) throw new Error(`After a minute ${drawn()} of ${cells} cells were drawn, and the notebook had ${focused() ? 'the' : 'no'} focus.`);
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
  const after = await processor(devtools);
  const [profile, trace] = await recorded();
  const wall = await opened.evaluate(async ({ panel, took }) => {
    await panel.context.save(); // what the kernel is was written into it, and a changed notebook asks before it closes
    panel.close();
    await new Promise((done) => setTimeout(done, 300));
    if (!panel.isDisposed) throw new Error('The notebook stays open: the next round would only show it again.');
    return took;
  });
  const cpu = after - before;
  return { cpu, wall, ...spent(profile, trace, cpu, FILES) };
}

/** Samples the page's functions and traces its style and layout, until the returned function is called. */
async function record(devtools: CDPSession): Promise<() => Promise<[Profile, TraceEvent[]]>> {
  const events: TraceEvent[] = [];
  const collect = ({ value }: { value: object[] }): number => events.push(...(value as TraceEvent[]));
  devtools.on('Tracing.dataCollected', collect);
  const includedCategories = ['devtools.timeline', 'disabled-by-default-devtools.timeline.stack'];
  await devtools.send('Tracing.start', { traceConfig: { recordMode: 'recordAsMuchAsPossible', includedCategories, excludedCategories: ['*'] } });
  await devtools.send('Profiler.start');
  return async () => {
    const { profile } = await devtools.send('Profiler.stop');
    const complete = new Promise((done) => devtools.once('Tracing.tracingComplete', done));
    await devtools.send('Tracing.end');
    await complete;
    devtools.off('Tracing.dataCollected', collect);
    return [profile, events];
  };
}

/** Milliseconds of the processor that the page's main thread has had. */
async function processor(devtools: CDPSession): Promise<number> {
  const { metrics } = await devtools.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN);
}
