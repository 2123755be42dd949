// `%%cuda` cells with a real language server: clangd through jupyterlab-lsp. Runs where both are installed.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { LabServer } from '../support/lab-server.ts';
import { useLab } from '../support/lab-test.ts';

/** As docs/lab.md has them: without the CUDA toolkit clangd needs to be told what its words mean. */
const FLAGS = [
  '-nocudainc',
  '-nocudalib',
  ...['global', 'device', 'host', 'shared', 'constant'].map((word) => `-D__${word}__=__attribute__((${word}))`),
  '-include__clang_cuda_builtin_vars.h',
];
const SETUP = '%load_ext pygpukit';
const CUDA = '%%cuda\n__global__ void twice(float* x, int count) {\n    x[threadIdx.x] *= 2;\n}';
const [SETUP_AT, CUDA_AT] = [0, 1];

test.skip(!LabServer.has('jupyterlab_lsp') || spawnSync('clangd', ['--version']).status !== 0, 'there is no clangd with jupyterlab-lsp');

const flags = mkdtempSync(join(tmpdir(), 'pygpukit-clangd-'));
// A name that nobody but clangd can know.
writeFileSync(join(flags, 'names.h'), 'int only_clangd_knows(int);');
writeFileSync(join(flags, 'compile_flags.txt'), [...FLAGS, `-include${join(flags, 'names.h')}`].join('\n'));
test.afterAll(() => rmSync(flags, { recursive: true, force: true }));

const clangd = {
  version: 2,
  argv: ['clangd', `--compile-commands-dir=${flags}`],
  languages: ['cuda'],
  mime_types: ['text/x-cuda'],
  display_name: 'clangd',
};

const lab = useLab({
  config: { LanguageServerManager: { language_servers: { 'clangd-cuda': clangd } } },
  notebooks: { 'clangd.ipynb': [SETUP, CUDA] },
});

test('it gets the cells, underlines what is wrong, and offers the words', async () => {
  const { page } = lab.notebook;
  await lab.open('clangd.ipynb', SETUP_AT);
  // What is typed while jupyterlab-lsp hands the document over reaches the server with what is typed next.
  let typed = CUDA.replace('*= 2', '*= factor');
  await expect(async () => {
    typed += ' ';
    await lab.cells.write(CUDA_AT, typed);
    await expect(lab.cells.at(CUDA_AT).locator('.cm-lintRange-error')).toHaveText(['factor'], { timeout: 10_000 });
  }).toPass({ timeout: 60_000 });
  // The lab offers nothing of a server that takes a second to answer, and asks when the key is pressed again.
  await expect(async () => {
    await lab.cells.write(CUDA_AT, CUDA.replace('*= 2', '*= only_cl'));
    await lab.cells.at(CUDA_AT).locator('.cm-line').nth(2).click();
    for (const key of ['End', 'ArrowLeft', 'Tab']) await page.keyboard.press(key);
    await expect(page.locator('.jp-Completer-item').first()).toContainText('only_clangd_knows', { timeout: 5000 });
  }).toPass({ timeout: 60_000 });
});
