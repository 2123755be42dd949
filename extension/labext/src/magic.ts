// Which cells are CUDA: as IPython decides it, by the first line that is not blank.

export const CUDA_MIME = 'text/x-cuda';

/** Index of the `%%cuda` line, counted from 0; -1 where the cell is none. */
export function magicLine(source: string): number {
  const found = /^\s*%%cuda(?![\w.])/.exec(source);
  return found ? found[0].split('\n').length - 1 : -1;
}

export function isCuda(source: string): boolean {
  return magicLine(source) >= 0;
}
