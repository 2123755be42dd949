// Which cells are CUDA: as IPython decides it, by the first line that is not blank.

export const CUDA_MIME = 'text/x-cuda';

/** Index of the `%%cuda` line, counted from 0; -1 where the cell is none. */
export function magicLine(source: string): number {
  const match = /^\s*%%cuda(?![\w.])/.exec(source);
  return match ? match[0].split('\n').length - 1 : -1;
}

/** Whether a cell loads the extension into its kernel. */
export function loadsExtension(source: string): boolean {
  return /^\s*%(?:re)?load_ext\s+pygpukit(?![\w])/m.test(source);
}

export function isCuda(source: string): boolean {
  return magicLine(source) >= 0;
}
