// A saved notebook that is opened again shows its views as they were saved, until a kernel has them; what was put into the file runs nowhere.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { CORPUS } from '../support/hostile-texts.ts';
import { NOTEBOOKS } from '../support/lab-server.ts';
import { useLab } from '../support/lab-test.ts';

const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';
const VIEW = 'gp.dashboard.memory()';
const [SETUP_AT, VIEW_AT] = [0, 1];
const WIDGET = 'application/vnd.jupyter.widget-view+json';
const HTML = 'text/html';
const NOTE = 'As it was when the notebook was saved. Run the cell for the live view.';
const WORDS_OF_IPYWIDGETS = /Error displaying widget|Loading widget/;
/** What ipywidgets says in the console of a view whose kernel has ended. */
const NO_MODEL = /^console: .*widget model not found/i;

interface Output {
  output_type: string;
  data: Record<string, string | string[] | object>;
  metadata: object;
}

const OTHERS = [
  'import numpy as np\nimport pygpukit as gp\nfrom pygpukit.jupyter.widgets import PlayerWidget, RecorderWidget, SpectrogramWidget\ntone = np.sin(np.arange(8000) * 0.3).astype(np.float32)',
  'gp.ops.audio.from_pcm(tone, 8000)',
  'stream = PlayerWidget(sample_rate=8000)\nstream',
  'RecorderWidget()',
  'gp.ops.audio.from_pcm(np.zeros(600_000, np.float32), 8000)',
];

const lab = useLab({ notebooks: { 'live.ipynb': [SETUP, VIEW], 'others.ipynb': OTHERS }, known: [NO_MODEL] });

const textOf = (output: Output, kind: string): string => [output.data[kind] ?? ''].flat().join('');

/** The pictures that the project's own notebook was saved with, of each kind of view, live and replayed. */
function pictures(): string[] {
  const { cells } = JSON.parse(readFileSync(join(NOTEBOOKS, '06_dashboards.ipynb'), 'utf8')) as { cells: { outputs?: Output[] }[] };
  const outputs = cells.flatMap((cell) => cell.outputs ?? []).filter(({ data }) => data);
  return outputs.map((output) => textOf(output, HTML)).filter((html) => html.includes('<svg'));
}

/** Writes a notebook of a cell for each of these saved pictures, which are of views whose kernel has ended. */
function write(name: string, saved: readonly string[], plain = 'MemoryWidget()', kernel = 'python3'): void {
  const cells = saved.map((html, at) => {
    const view = { version_major: 2, version_minor: 0, model_id: `${at}`.padStart(32, '0') };
    const output: Output = { output_type: 'display_data', data: { [WIDGET]: view, [HTML]: html, 'text/plain': plain }, metadata: {} };
    return { id: `cell-${at}`, cell_type: 'code', source: '1', metadata: {}, outputs: [output], execution_count: 1 };
  });
  const kernelspec = { name: kernel, display_name: kernel, language: 'python' };
  lab.server.writeNotebook(name, JSON.stringify({ cells, metadata: { kernelspec }, nbformat: 4, nbformat_minor: 5 }));
}

test('its view is the saved picture while no kernel has it, and live once the cell has run, once', async () => {
  const { page } = lab.notebook;
  await lab.open('live.ipynb', SETUP_AT, VIEW_AT);
  const cell = lab.cells.at(VIEW_AT);
  await cell.scrollIntoViewIfNeeded();
  await expect(cell.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
  await expect(page.locator('.gk-saved')).toHaveCount(0);
  await lab.notebook.save();

  // The kernel lives on and is busy: the picture stays until the view is there, with no words in between.
  await lab.notebook.keepBusy();
  await page.goto(lab.server.notebookUrl('live.ipynb'));
  await expect(cell.locator('.gk-saved')).toBeVisible();
  await cell.evaluate((node) => {
    const look = (): void => void (/(Error displaying|Loading) widget/.test(node.textContent ?? '') && node.setAttribute('data-said', 'yes'));
    look();
    new MutationObserver(look).observe(node, { childList: true, subtree: true });
  });
  await page.waitForTimeout(2500); // ipywidgets looks for the model for two seconds, and again once the kernel answers
  lab.notebook.release();
  await expect(cell.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
  await expect(cell.locator('.gk-panel')).toHaveCount(1);
  await expect(page.locator('.gk-saved')).toHaveCount(0);
  await expect(cell).not.toHaveAttribute('data-said');

  await lab.notebook.save();
  await page.goto('about:blank');
  await lab.server.endKernels();
  await lab.open('live.ipynb');
  const { cells } = JSON.parse(lab.server.readNotebook('live.ipynb')) as { cells: { outputs: Output[] }[] };
  const saved = textOf(cells[VIEW_AT]!.outputs[0]!, HTML);
  await expect(cell.locator('.gk-saved')).toBeVisible();
  await expect(cell.locator('.gk-saved-note')).toHaveText(NOTE);
  await expect(cell.locator('.gk-saved svg')).toBeVisible();
  await expect(cell.locator('.gk-saved svg rect')).toHaveCount(saved.split('<rect').length - 1);
  await expect(cell).toContainText(/\d+ live blocks/);
  await expect(cell).not.toContainText(WORDS_OF_IPYWIDGETS);
  await expect(page.locator('.gk-panel')).toHaveCount(0);

  await lab.cells.run(SETUP_AT);
  await lab.cells.run(VIEW_AT);
  await expect(cell.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
  await expect(cell.locator('.gk-panel')).toHaveCount(1);
  await expect(page.locator('.gk-saved')).toHaveCount(0);
});

for (const trusted of [true, false]) {
  test(`of each kind of view the whole picture is shown, in a notebook that is ${trusted ? '' : 'not '}trusted`, async () => {
    const { page } = lab.notebook;
    const saved = pictures();
    expect(saved.length).toBeGreaterThanOrEqual(4);
    write('kinds.ipynb', saved);
    if (trusted) lab.server.trust('kinds.ipynb');
    await lab.open('kinds.ipynb');
    await expect(page.locator('.gk-saved')).toHaveCount(saved.length);
    for (const [at, html] of saved.entries()) {
      const shown = page.locator('.gk-saved').nth(at);
      await expect.poll(async () => (await shown.locator('svg').boundingBox())?.width).toBeGreaterThan(200); // none until it is laid out
      // Every element but what only styles, with every word and every length.
      const missing = await shown.evaluate((node, text) => {
        const described = (one: Element): string => {
          const attributes = [...one.attributes].filter(({ name }) => !['style', 'class'].includes(name));
          return `${one.localName} ${attributes.map(({ name, value }) => `${name}=${value}`).join(' ')} ${one.childElementCount ? '' : one.textContent}`;
        };
        const here = new Set([...node.querySelectorAll('*')].map(described));
        const all = [...new DOMParser().parseFromString(text, 'text/html').body.querySelectorAll('*')];
        return all.map(described).filter((one) => !here.has(one));
      }, html);
      expect(missing).toEqual([]);
    }
    await expect(page.locator('.jp-Notebook')).not.toContainText(WORDS_OF_IPYWIDGETS);
    // The lab's own drawing of the HTML does not stand beside.
    await expect(page.locator('.jp-OutputArea-output').getByText('pygpukit simulated GPU')).toHaveCount(saved.length);
  });
}

test('players are saved with their sound, up to a size, and recorders with how to go on', async () => {
  const { page } = lab.notebook;
  await lab.open('others.ipynb', 0, 1, 2, 3, 4);
  await lab.cells.at(2).scrollIntoViewIfNeeded();
  await expect(page.locator('.gk-panel')).toHaveCount(4);
  await lab.notebook.execute('stream.push(tone)\nstream.end()');
  const html = async (at: number): Promise<string> => {
    await lab.notebook.save();
    const { cells } = JSON.parse(lab.server.readNotebook('others.ipynb')) as { cells: { outputs: Output[] }[] };
    return textOf(cells[at]!.outputs[0]!, HTML);
  };
  await expect.poll(() => html(2)).toContain('<audio'); // pushed after its cell had ended
  expect(await html(4)).not.toContain('<audio');
  await page.goto('about:blank');
  await lab.server.endKernels();
  await lab.open('others.ipynb');
  await expect(page.locator('.gk-saved')).toHaveCount(4);
  await expect(page.locator('.jp-Notebook')).not.toContainText(WORDS_OF_IPYWIDGETS);
  for (const at of [1, 2, 3, 4]) {
    const words = await lab.cells.at(at).locator('.gk-saved').textContent();
    expect(words?.match(/run the cell/gi), 'how to go on is said once').toHaveLength(1);
  }
  for (const at of [1, 2]) {
    const saved = lab.cells.at(at).locator('.gk-saved');
    await expect(saved.locator('svg path')).toHaveCount(1);
    await expect(saved.locator('img')).toHaveCount(1);
    // The browser reads the sound: it is as long as it was.
    await expect.poll(() => saved.locator('audio').evaluate((one) => (one as HTMLAudioElement).duration)).toBeCloseTo(1, 2);
  }
  await expect(lab.cells.at(3).locator('.gk-saved')).toContainText('A recorder: run the cell to record.');
  await expect(lab.cells.at(4).locator('.gk-saved')).toContainText('longer than what a notebook keeps (1 MiB)');
  await expect(lab.cells.at(4).locator('audio')).toHaveCount(0);
});

test('without a kernel the picture is shown, too', async () => {
  const { page } = lab.notebook;
  write('alone.ipynb', pictures().slice(0, 1), 'MemoryWidget()', 'of-another-machine');
  lab.server.trust('alone.ipynb');
  await page.goto(lab.server.notebookUrl('alone.ipynb'));
  const dialog = page.locator('.jp-Dialog');
  await dialog.getByRole('button', { name: 'No Kernel' }).click();
  await expect(page.locator('.gk-saved-note')).toHaveText(NOTE);
  await expect(page.locator('.gk-saved svg')).toBeVisible();
  await expect(lab.cells.at(0)).not.toContainText(WORDS_OF_IPYWIDGETS);
});

test('what a saved file would like to run does not run, and asks for nothing', async () => {
  const { page } = lab.notebook;
  const markup = [
    ...CORPUS,
    ...CORPUS.map((text) => `<table><tbody><tr><td>${text}</td></tr></tbody></table>`),
    ...CORPUS.map((text) => `<svg viewBox="0 0 1 1"><text>${text}</text></svg>`),
    '<svg viewBox="0 0 1 1" onload="window.hit=1" style="background:url(/hit)"><rect fill="url(/hit)" onclick="window.hit=1"/><image href="/hit"/><use href="/hit#a"/></svg>',
    '<p style="background:url(/hit)" class="jp-Button" data-commandlinker-command="hit" id="hit">x</p>',
  ];
  // Not the images: the lab loads those itself, as it looks for headings in the HTML of each output.
  const asked: string[] = [];
  page.on('request', (request) => {
    if (/\/hit($|[?#])|:9\//.test(request.url())) asked.push(request.url());
  });
  write('hostile.ipynb', markup);
  lab.server.trust('hostile.ipynb');
  await lab.open('hostile.ipynb');
  await expect(page.locator('.gk-saved')).toHaveCount(markup.length);
  const { kinds, attributes, hit } = await page.evaluate(() => {
    const all = [...document.querySelectorAll('.gk-saved *')];
    return {
      kinds: [...new Set(all.map(({ localName }) => localName))],
      attributes: [...new Set(all.flatMap((one) => [...one.attributes].map(({ name }) => name)))],
      hit: 'hit' in window,
    };
  });
  expect(hit).toBe(false);
  const mine = ['b', 'br', 'div', 'p', 'rect', 'svg', 'table', 'tbody', 'td', 'text', 'tr'];
  expect(kinds.filter((one) => !mine.includes(one))).toEqual([]);
  expect(attributes.filter((one) => !['class', 'viewBox'].includes(one))).toEqual([]);
  await expect(page.locator('.gk-saved [class]:not(.gk-saved-note)')).toHaveCount(0);
  expect(asked).toEqual([]);
});

test("another library's views are left as they are", async () => {
  write('other.ipynb', ['<p>theirs</p>'], 'IntSlider(value=0)');
  lab.server.trust('other.ipynb');
  await lab.open('other.ipynb');
  await expect(lab.cells.at(0)).toContainText('Error displaying widget');
  await expect(lab.notebook.page.locator('.gk-saved')).toHaveCount(0);
});
