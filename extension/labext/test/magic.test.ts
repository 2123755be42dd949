// Which cells are CUDA.

import { expect, it } from 'vitest';
import { isCuda, loadsExtension, magicLine } from '../src/magic.js';

it('goes by the first line that is not blank', () => {
  for (const source of ['%%cuda', '%%cuda -i x', '\n\n  \n%%cuda\n// c', '%%cuda\t--bench', '%%cuda\n']) {
    expect(isCuda(source), source).toBe(true);
  }
  for (const source of ['', '%cuda', '%%cudafoo', '%%cuda_reset', '# c\n%%cuda', 'x = 1\n%%cuda', '"%%cuda"', '%%time']) {
    expect(isCuda(source), source).toBe(false);
  }
  expect(magicLine('\n\n%%cuda')).toBe(2);
  expect(magicLine('%%cuda\n%%cuda')).toBe(0);
});

it('knows the cells that load the extension', () => {
  for (const source of ['%load_ext pygpukit', 'import os\n%load_ext pygpukit\nx = 1', '%reload_ext pygpukit.jupyter']) {
    expect(loadsExtension(source), source).toBe(true);
  }
  for (const source of ['', '# %load_ext pygpukit', '%load_ext pygpukit2', '%unload_ext pygpukit', 'import pygpukit']) {
    expect(loadsExtension(source), source).toBe(false);
  }
});
