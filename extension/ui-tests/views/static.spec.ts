// The dashboards' notebook as nbconvert writes it: each view is a picture and a table, and the page asks for nothing.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';

const NOTEBOOK = join(import.meta.dirname, '../../../notebooks/06_dashboards.ipynb');
const PYTHON = process.env['PYGPUKIT_PYTHON'] ?? 'python';
/** The template of the package, which fetches nothing; nbconvert finds an installed one by itself. */
const TEMPLATES = join(import.meta.dirname, '../../../pygpukit.data/data/share/jupyter/nbconvert/templates');
const TEMPLATE = ['--template=pygpukit', `--TemplateExporter.extra_template_basedirs=${TEMPLATES}`];

test('a static page shows an SVG and a table for each view and makes no request', async ({ page }, info) => {
  execFileSync(PYTHON, ['-m', 'nbconvert', '--to', 'html', ...TEMPLATE, '--output-dir', info.outputDir, NOTEBOOK], { stdio: 'pipe' });
  const html = readFileSync(info.outputPath('06_dashboards.html'), 'utf8');
  const requests: string[] = [];
  await page.route('**', (route) => {
    const url = route.request().url();
    if (url === 'http://static.test/') return route.fulfill({ contentType: 'text/html', body: html });
    requests.push(url);
    return route.abort();
  });
  await page.goto('http://static.test/', { waitUntil: 'networkidle' });
  const views = page.locator('.jp-RenderedHTMLCommon.jp-OutputArea-output').filter({ has: page.locator('svg') });
  expect(await views.count()).toBeGreaterThanOrEqual(4);
  for (const view of await views.all()) {
    await expect(view.locator('svg').first()).toBeVisible();
    const box = await view.locator('svg').first().boundingBox();
    expect(box?.width).toBeGreaterThan(200);
    await expect(view.locator('table tr').first()).toBeVisible();
  }
  await expect(page.locator('.jp-OutputArea-output', { hasText: 'Widget()' })).toHaveCount(0);
  expect(requests).toEqual([]);
});
