// Run All with every dashboard open beside the notebook: no error but those that it shows, each picture in its cell, and none
// blank. `npm run figures` takes every notebook, ten times over; other runs take those that draw most (OFTEN). The page also asks
// for the status all the while, so that messages are answered while cells draw.

import { readdirSync } from 'node:fs';
import { type Locator, expect, test } from '@playwright/test';
import { NOTEBOOKS } from '../support/lab-server.ts';
import { useLab } from '../support/lab-test.ts';

const OFTEN = ['00_tour.ipynb', '03_arrays.ipynb', '05_scheduler.ipynb'];
const VIEWS = ['memory', 'scheduler', 'device', 'cells'];
const LOAD = '%load_ext pygpukit';
const ASK_MS = 100;
/** Less of a picture than this in another colour than its corner has is nothing drawn. */
const DRAWN = 0.01;
/** Events of the shell that were not fired by the cells: other threads fire them around a message that they answer. */
const WATCH = `
import threading as _threading
_fired = []
for _event in ("pre_execute", "post_execute"):
    get_ipython().events.register(_event, lambda: _threading.current_thread() is _threading.main_thread() or _fired.append(1))`;

const lab = useLab({});

interface Saved {
  readonly outputs?: readonly { readonly data?: object; readonly ename?: string }[];
}

function savedCells(name: string): Saved[] {
  return (JSON.parse(lab.server.readNotebook(name)) as { cells: Saved[] }).cells;
}

/** From now on the page asks the kernel again and again, on a channel of its own; resolves when it was answered. */
async function askAgainAndAgain(): Promise<void> {
  await lab.notebook.page.evaluate(async (pause) => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const comm = kernel.createComm('pygpukit.control.v1');
    await comm.subshellStarted;
    await new Promise<void>((answered) => {
      let id = 0;
      comm.onMsg = () => {
        answered();
        setTimeout(ask, pause);
      };
      const ask = (): unknown => !comm.isDisposed && comm.send({ id: ++id, action: 'status', args: {} });
      comm.open();
      ask();
    });
  }, ASK_MS);
}

/** The part of a picture that has another colour than its corner. */
function drawn(picture: Locator): Promise<number> {
  return picture.evaluate(async (node) => {
    const image = node as HTMLImageElement;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    const context = new OffscreenCanvas(width, height).getContext('2d');
    if (!context) throw new Error('This browser draws nothing.');
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    return pixels.filter((one) => one !== pixels[0]).length / pixels.length;
  });
}

for (const name of readdirSync(NOTEBOOKS).filter((one) => one.endsWith('.ipynb'))) {
  test(`${name}: Run All is clean, and every picture is there${OFTEN.includes(name) ? '' : ' @long'}`, async () => {
    const { notebook, cells } = lab;
    await lab.open(name);
    const saved = savedCells(name);
    await notebook.page.evaluate(() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs'));
    expect(await notebook.execute(LOAD + WATCH)).toBe('');
    for (const view of VIEWS) {
      await notebook.page.evaluate(
        async (args) => {
          await window.jupyterapp.commands.execute('pygpukit:open-view', args);
        },
        { view, path: name },
      );
    }
    await expect(notebook.page.locator('.gk-dashboard-pane .gk-panel')).toHaveCount(VIEWS.length);
    // Those behind a tab are not drawn, and tell the kernel so.
    await expect(notebook.page.locator('.gk-dashboard-pane:visible .gk-panel[data-state="live"]').first()).toBeVisible();
    await expect(notebook.page.locator('.gk-dashboard-pane:visible .gk-panel:not([data-state="live"])')).toHaveCount(0);
    await notebook.toFront();
    if (await notebook.subshells()) await askAgainAndAgain();
    await notebook.runAll(saved.flatMap(({ outputs = [] }) => outputs.flatMap(({ ename }) => ename ?? [])));
    for (const [at, { outputs = [] }] of saved.entries()) {
      const pictures = cells.at(at).locator('.jp-RenderedImage img');
      await expect(pictures, `cell ${at}`).toHaveCount(outputs.filter(({ data }) => data && 'image/png' in data).length);
      for (const picture of await pictures.all()) expect(await drawn(picture), `cell ${at}`).toBeGreaterThan(DRAWN);
    }
    expect(await notebook.execute('print(len(_fired))')).toBe('0\n');
  });
}
