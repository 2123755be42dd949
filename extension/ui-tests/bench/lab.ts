// Figures with a kernel in JupyterLab, all in cells that keep it busy: updates that reach the page, controls, two views, what hidden ones get.

import { type Locator, expect, test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { NotebookPage } from '../support/notebook-page.ts';
import { percentile, report } from './figures.ts';

const BUSY_S = 10;
/** Less than the cell takes: what is seen is seen while it runs. */
const SEEN_MS = BUSY_S * 1000 - 1500;
const PRESSES = 8;
const PATIENCE_MS = 5000;
const HIDDEN_S = 5;
const LAUNCHING = `
import time as _time, pygpukit as _gp
_end = _time.monotonic() + ${BUSY_S}
while _time.monotonic() < _end:
    _gp.ones(1 << 14) + _gp.ones(1 << 14)
    _time.sleep(0.005)
`;
/** A kernel of so long by the device's clock, which counts nanoseconds on the simulation; an end before the measurement is an error. */
const SPIN = `%%cuda
__global__ void spin() {
    const long long begun = clock64();
    while (clock64() - begun < ${BUSY_S * 1e9}) { }
}`;
const SPINNING = `
import pygpukit as _gp
spin[1, 1]()
_gp.synchronize()
`;
/** One task holds the only worker until it is let go; the others wait, to be acted on. */
const TASKS = `
import threading as _threading
_gate = _threading.Event()
_first = scheduler.submit(_gate.wait)
_held = [scheduler.submit(int, name=f"held {i}", depends_on=_first) for i in range(${PRESSES})]
`;
/** What the presses must have left behind: phases, share, priority, the pool's limit. */
const LEFT = 'from pygpukit._core import pool_stats as _stats\nprint(*{task.phase for task in _held}, _held[0].bandwidth, _held[0].priority, _stats(0).quota, end="")';
const TWO_VIEWS = ['%load_ext pygpukit\nimport pygpukit as gp', 'gp.dashboard.memory()'];

interface Seen {
  /** When a view showed another moment, ms, and the sequence number of that moment. */
  readonly at: number;
  readonly seq: number;
}

/** What each of these views comes to show from now on. */
function watch(views: Locator, ms: number): Promise<Seen[][]> {
  return views.evaluateAll(async (nodes, duration) => {
    const seen = nodes.map((): Seen[] => []);
    const observers = nodes.map((node, i) => {
      const observer = new MutationObserver(() => seen[i]?.push({ at: performance.now(), seq: Number((node as HTMLElement).dataset['seq']) }));
      observer.observe(node, { attributeFilter: ['data-seq'] });
      return observer;
    });
    await new Promise((done) => setTimeout(done, duration));
    for (const observer of observers) observer.disconnect();
    return seen;
  }, ms);
}

/** What was measured until now was measured in a busy cell, which ends as it should. */
async function stillBusy(notebook: NotebookPage): Promise<void> {
  if (!(await notebook.busy())) throw new Error('The cell ended before the measurement.');
  const printed = await notebook.finish();
  if (printed !== '') throw new Error(`The busy cell printed ${printed}`);
}

/** How often a view was updated while a cell ran. */
async function updates(name: string, notebook: NotebookPage, view: Locator, cell: string): Promise<void> {
  await notebook.start(cell);
  const [seen = []] = await watch(view, SEEN_MS);
  await stillBusy(notebook);
  const gaps = seen.slice(1).map(({ at }, i) => at - (seen[i]?.at ?? NaN));
  const perSecond = (1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0);
  report(name, { updates: seen.length, updates_per_s: Number(perSecond.toFixed(2)), gap_p95_ms: percentile(gaps, 0.95) });
}

/** The controls in turn, each pressed again and again: how long until the view showed that it acted, or without subshells that it waits. */
class Presses {
  constructor(
    private readonly until: 'done' | 'queued',
    private readonly count = PRESSES,
  ) {}

  /** before: what a person does first. value: what is written into the field. */
  async measure(name: string, button: Locator, value = (_i: number): string => '', before = async (_i: number): Promise<void> => undefined): Promise<void> {
    const waits: number[] = [];
    for (let i = 0; i < this.count; i++) {
      await before(i);
      waits.push(await this.press(button, value(i)));
    }
    report(`control_${name}`, { presses: this.count, until: this.until, p50_ms: percentile(waits, 0.5), max_ms: percentile(waits, 1) });
  }

  private press(button: Locator, value: string): Promise<number> {
    return button.evaluate(
      async (node, { until, text, patience }) => {
        const pressed = node as HTMLButtonElement;
        const status = node.closest('.gk-controls')?.querySelector('.gk-control-status') as HTMLElement;
        const input = node.closest('form')?.querySelector('input');
        for (const end = performance.now() + patience; pressed.disabled; ) {
          if (performance.now() > end) throw new Error(`${pressed.textContent} stays disabled`);
          await new Promise((done) => requestAnimationFrame(done));
        }
        if (input) input.value = text;
        status.dataset['state'] = '';
        return new Promise<number>((done, failed) => {
          const began = performance.now();
          const late = setTimeout(() => failed(new Error(`After ${patience} ms ${pressed.textContent} reads: ${status.textContent}`)), patience);
          const observer = new MutationObserver(() => {
            const { state } = status.dataset;
            if (state !== until && state !== 'refused') return;
            observer.disconnect();
            clearTimeout(late);
            if (state === until) done(performance.now() - began);
            else failed(new Error(status.textContent ?? ''));
          });
          observer.observe(status, { attributeFilter: ['data-state'] });
          pressed.click();
        });
      },
      { until: this.until, text: value, patience: PATIENCE_MS },
    );
  }
}

/** Chooses a task with the keys, as a person does. */
function choose(view: Locator, name: string): Promise<void> {
  return view.locator('.gk-gantt canvas').evaluate(async (canvas, expected) => {
    const key = (name: string): boolean => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
    const chosen = canvas.closest('.gk-panel')?.querySelector('.gk-chosen') as HTMLElement;
    const rows = 100;
    for (let i = 0; i < rows; i++) key('ArrowUp');
    for (let i = 0; i < rows; i++) {
      key('Enter');
      for (let frames = 0; frames < 2; frames++) await new Promise((done) => requestAnimationFrame(done));
      if (chosen.textContent?.startsWith(`Chosen: ${expected},`)) return;
      key('ArrowDown');
    }
    throw new Error(`There is no task ${expected}.`);
  }, name);
}

test('the dashboards of a kernel', async ({ browser }) => {
  const server = await LabServer.start('JupyterLab Light');
  try {
    server.putNotebook('two-views.ipynb', TWO_VIEWS);
    const notebook = new NotebookPage(await browser.newPage());
    const { page } = notebook;
    const panel = (title: string): Locator => page.locator(`.gk-panel[aria-label="${title}"]`);
    await notebook.open(server.notebookUrl('06_dashboards.ipynb'));
    await notebook.runAll();
    const subshells = await notebook.subshells();
    // The last that comes into sight stays there; the memory view has been there, so that it has its controls.
    const [memory, view] = [panel('GPU memory').first(), panel('GPU scheduler').first()];
    for (const one of [memory, view]) {
      await one.scrollIntoViewIfNeeded();
      await expect(one).toHaveAttribute('data-state', 'live', { timeout: 60_000 });
    }
    await updates('busy_cell', notebook, view, LAUNCHING);
    await notebook.execute(SPIN);
    await updates('busy_cell_in_one_native_call', notebook, view, SPINNING);

    await notebook.execute(TASKS);
    await view.locator('.gk-phases li[data-phase="Queued"]').waitFor();
    await notebook.keepBusy('import pygpukit as _gp', '_gp.ones(1 << 14) + _gp.ones(1 << 14)');
    const presses = new Presses(subshells ? 'done' : 'queued');
    const button = (text: string): Locator => view.getByRole('button', { name: text, exact: true });
    await presses.measure('pause', button('Pause'));
    await presses.measure('resume', button('Resume'));
    await choose(view, 'held 0');
    await presses.measure('share', button('Set share'), (i) => `${i + 1} %`);
    await presses.measure('priority', button('Set priority'), (i) => `${i + 1}`);
    await presses.measure('cancel', button('Cancel the chosen task'), undefined, (i) => choose(view, `held ${i}`));
    await presses.measure('quota', memory.getByRole('button', { name: 'Set limit', exact: true }), (i) => `${i + 1}GiB`);
    await stillBusy(notebook);
    const left = await notebook.execute(LEFT);
    const expected = `Cancelled ${PRESSES / 100} ${PRESSES} ${PRESSES * 2 ** 30}`;
    if (left !== expected) throw new Error(`The controls left ${left}, not ${expected}.`);

    await page.evaluate(() => {
      for (const node of document.querySelectorAll<HTMLElement>('.gk-panel')) node.style.display = 'none';
    });
    await page.waitForTimeout(1500);
    const before = notebook.commMessages;
    await page.waitForTimeout(HIDDEN_S * 1000);
    report('hidden', { seconds: HIDDEN_S, messages: notebook.commMessages - before });

    await notebook.open(server.notebookUrl('two-views.ipynb'));
    await notebook.runAll();
    await page.evaluate(() => window.jupyterapp.commands.execute('pygpukit:open-view', { view: 'memory' }));
    const live = page.locator('.gk-panel[aria-label="GPU memory"][data-state="live"]');
    for (const at of [0, 1]) await live.nth(at).waitFor();
    await notebook.toFront();
    await notebook.start(LAUNCHING);
    const [inCell = [], beside = []] = await watch(live, SEEN_MS);
    await stillBusy(notebook);
    const lags = [...apart(inCell, beside), ...apart(beside, inCell)];
    report('two_views', { moments: lags.length, p50_ms: percentile(lags, 0.5), p95_ms: percentile(lags, 0.95), max_ms: percentile(lags, 1) });
  } finally {
    await server.stop();
  }
});

/** How far in time two views are apart: for each moment that one showed, until or since the other showed it, or skipped it for a later one. */
function apart(one: readonly Seen[], other: readonly Seen[]): number[] {
  const begun = Math.max(one[0]?.seq ?? Infinity, other[0]?.seq ?? Infinity); // one of them may have shown it before the watch
  return one.flatMap(({ at, seq }) => {
    const there = other.find((seen) => seen.seq >= seq);
    return seq > begun && there ? [Math.abs(there.at - at)] : []; // the last ones come when the watch is over
  });
}
