// A saved notebook shows its live views as they were last looked at, as pictures that hold no script.

import { expect, test } from '@playwright/test';
import { useLab } from '../support/lab-test.ts';

const SETUP = '%load_ext pygpukit\nimport pygpukit as gp\nx = gp.ones(64)';
const VIEW = 'gp.dashboard.memory()';
const HOSTILE = '<script>hit()</script><img src=x onerror=hit()>';
const PICTURES = { id: 'pygpukit:pictures', title: 'pygpukit: Saved views' };
const [SETUP_AT, VIEW_AT] = [0, 1];

const lab = useLab({ notebooks: Object.fromEntries(['saved', 'kept', 'others'].map((name) => [`${name}.ipynb`, [SETUP, VIEW]])) });

interface Saved {
  readonly cells: readonly { readonly outputs: readonly { readonly data?: Readonly<Record<string, string | string[]>> }[] }[];
}

async function begin(name: string): Promise<void> {
  await lab.open(name, SETUP_AT, VIEW_AT);
  await lab.cells.at(VIEW_AT).scrollIntoViewIfNeeded();
  await expect(lab.notebook.page.locator('.gk-panel')).toHaveAttribute('data-state', 'live');
}

/** What the notebook has for places without a kernel, once it is saved. */
async function savedHtml(name: string): Promise<string> {
  await lab.notebook.save();
  const { cells } = JSON.parse(lab.server.readNotebook(name)) as Saved;
  return [cells[VIEW_AT]?.outputs[0]?.data?.['text/html'] ?? ''].flat().join('');
}

const blocks = (html: string): number => Number(/(\d+) live blocks/.exec(html)?.[1]);

test('it has a later picture than that of the end of the cell, and nothing is drawn again', async () => {
  const { page } = lab.notebook;
  const panel = page.locator('.gk-panel');
  await begin('saved.ipynb');
  const before = blocks(await savedHtml('saved.ipynb'));
  expect(before).toBeGreaterThan(0);
  await panel.evaluate((node) => node.setAttribute('data-same', 'yes'));
  await lab.notebook.keepBusy(`held = [gp.zeros(1 << 18) for _ in range(7)]\nheld[0].name = ${JSON.stringify(HOSTILE)}`);
  await expect.poll(async () => blocks(await savedHtml('saved.ipynb'))).toBe(before + 7);
  // A picture may be made between an array and its name.
  await expect.poll(() => savedHtml('saved.ipynb')).toContain('onerror');
  expect(await lab.notebook.finish()).toBe('');
  await expect(panel).toHaveAttribute('data-same', 'yes');
  await expect(panel).toHaveAttribute('data-state', 'live');
  const html = await savedHtml('saved.ipynb');
  const result = await page.evaluate((text) => {
    const { documentElement } = new DOMParser().parseFromString(text.replaceAll('<br>', '<br/>'), 'application/xml');
    const elements = [documentElement, ...documentElement.querySelectorAll('*')];
    return {
      faults: documentElement.querySelectorAll('parsererror').length,
      pictures: documentElement.querySelectorAll('svg').length,
      shapes: documentElement.querySelectorAll('svg rect').length,
      scripts: elements.filter(({ localName, attributes }) => ['script', 'img'].includes(localName) || [...attributes].some(({ name }) => name.startsWith('on'))).length,
      cells: [...documentElement.querySelectorAll('td')].map(({ textContent }) => textContent),
    };
  }, html);
  expect(result).toMatchObject({ faults: 0, pictures: 1, scripts: 0 });
  expect(result.shapes).toBeGreaterThan(7);
  expect(result.cells).toContain(HOSTILE);
});

test('what is no picture of a view is not saved', async () => {
  const { page } = lab.notebook;
  await begin('others.ipynb');
  const before = await savedHtml('others.ipynb');
  const { cells } = JSON.parse(lab.server.readNotebook('others.ipynb')) as { cells: { outputs: { data: Record<string, { model_id: string }> }[] }[] };
  const model = cells[VIEW_AT]?.outputs[0]?.data['application/vnd.jupyter.widget-view+json']?.model_id;
  const hostile = [
    '<script>hit()</script>',
    '<img src=x onerror=hit()>',
    '<div onclick=hit()>a</div>',
    '<svg onload=hit()></svg>',
    '<svg><a href="javascript:hit()"><text>a</text></a></svg>',
    '<div style="background:url(//elsewhere)">a</div>',
    '<svg><rect fill="url(//elsewhere)"/></svg>',
    '<link rel=stylesheet href=//elsewhere>',
    '<body onload=hit()>a',
    '<iframe srcdoc="<script>hit()</script>"></iframe>',
    '<style>* { display: none }</style>',
    // What a page would make another thing of than a document of its own.
    '<frameset></frameset><img src=x onerror=hit()>',
    '<p>a</p><img src=x onerror="hit()" ',
    '<p>a</p><img src=x onerror="hit()" alt=">',
    '<p>a</p><!--',
    '<p>a</p><!-- a -->',
    '<p>a</p></div>',
    '<p>a</p></div><p>b</p>',
    '<div><p>a</p>',
    '<html onload=hit()><p>a</p></html>',
    // What styles or names itself as something else of the page.
    '<div style="position: fixed">a</div>',
    '<div class="jp-Button">a</div>',
    '<p id="main">a</p>',
    '<table><tbody><tr><td width="9999999">a</td></tr></tbody></table>',
  ];
  const send = (details: unknown[]): Promise<void> =>
    page.evaluate((told) => told.forEach((detail) => document.dispatchEvent(new CustomEvent('pygpukit:still', { detail }))), details);
  await send([null, {}, { model, data: 3 }, { model, data: { 'text/html': 3 } }, ...hostile.map((html) => ({ model, data: { 'text/html': html } }))]);
  expect(await savedHtml('others.ipynb')).toBe(before);
  const picture = '<div class="gk-live"><p style="max-width: 640px">a <b>picture</b></p></div>';
  await send([{ model, data: { 'text/html': picture } }]);
  expect(await savedHtml('others.ipynb')).toBe(picture);
});

test('with the setting off it keeps the picture of the end of the cell', async () => {
  await begin('kept.ipynb');
  const panel = lab.notebook.page.locator('.gk-panel');
  const before = await savedHtml('kept.ipynb');
  await lab.notebook.page.evaluate(() =>
    document.addEventListener('pygpukit:still', (event) => {
      const { 'text/html': html = '' } = (event as CustomEvent<{ data: Record<string, string> }>).detail.data;
      document.body.setAttribute('data-blocks', /(\d+) live blocks/.exec(html)?.[1] ?? '');
    }),
  );
  await lab.notebook.set(PICTURES, 'lastFrame', false);
  await panel.scrollIntoViewIfNeeded();
  await lab.notebook.execute('held = gp.zeros(1 << 18)');
  await expect(lab.notebook.page.locator('body')).toHaveAttribute('data-blocks', String(blocks(before) + 1));
  expect(await savedHtml('kept.ipynb')).toBe(before);
  await lab.notebook.set(PICTURES, 'lastFrame', true);
  await expect.poll(async () => blocks(await savedHtml('kept.ipynb'))).toBe(blocks(before) + 1);
});
