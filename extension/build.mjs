// Builds the widget bundles and the lab extension's modules. Usage: node build.mjs WIDGETS_OUT
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const out = process.argv[2];
if (!out) throw new Error('usage: node build.mjs WIDGETS_OUT');
const here = import.meta.dirname;
const widgets = JSON.parse(readFileSync(join(here, '../pygpukit/jupyter/widgets.json'), 'utf8'));
const dashboards = widgets.filter((widget) => widget.dashboard || widget.pane).map((widget) => widget.name);

// One self-contained module a widget: anywidget loads it from a Blob URL, where relative imports do not resolve.
await build({
  entryPoints: Object.fromEntries(widgets.map(({ name }) => [name, join(here, `widgets/src/${name}.ts`)])),
  outdir: out,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  legalComments: 'eof',
});
await build({ entryPoints: { widgets: join(here, 'views/src/style.css') }, outdir: out, bundle: true, minify: true });

// The lab's own builder bundles these.
const labext = join(here, 'labext');
const BUNDLED = 'markdown.ts'; // of our own packages, whose sources the lab's builder does not read
await build({
  entryPoints: [join(labext, 'src', BUNDLED)],
  outdir: join(labext, 'lib'),
  bundle: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'inline',
});
await build({
  entryPoints: readdirSync(join(labext, 'src')).filter((name) => name !== BUNDLED).map((name) => join(labext, 'src', name)),
  outdir: join(labext, 'lib'),
  define: { DASHBOARDS: JSON.stringify(dashboards) },
  format: 'esm',
  target: 'es2022',
});
