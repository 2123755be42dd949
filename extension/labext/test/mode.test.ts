import type { CodeEditor } from '@jupyterlab/codeeditor';
import { expect, test, vi } from 'vitest';
import { CUDA_MIME } from '../src/magic.js';
import { CudaMode } from '../src/mode.js';

const PYTHON = 'text/x-ipython';

/** A cell as the lab makes it: a change of its language is told to its editors. */
class Cell {
  readonly told: string[] = [];
  readonly type = 'code';
  private mime = 'text/plain';
  private listener: (sender: unknown, change: { sourceChange?: unknown }) => void = () => {};
  readonly sharedModel = {
    getSource: (): string => this.source,
    changed: { connect: (listener: typeof this.listener) => (this.listener = listener) },
  };

  constructor(private source: string) {}

  get mimeType(): string {
    return this.mime;
  }

  set mimeType(value: string) {
    if (value === this.mime) return;
    this.mime = value;
    this.told.push(value);
  }

  write(source: string): void {
    this.source = source;
    this.listener(this, { sourceChange: [] });
  }
}

function followed(source: string, left = vi.fn()): { cell: Cell; mode: CudaMode; left: typeof left } {
  const [cell, mode] = [new Cell(source), new CudaMode(left)];
  mode.follow(cell as unknown as CodeEditor.IModel);
  return { cell, mode, left };
}

test('a CUDA cell changes its language once, whatever the lab gives it', () => {
  const { cell } = followed('%%cuda\nint x;');
  cell.mimeType = PYTHON;
  cell.mimeType = 'text/x-python';
  cell.mimeType = CUDA_MIME;
  expect(cell.told).toEqual([CUDA_MIME]);
});

test('a cell that is CUDA no more is what the lab gave it last', () => {
  const { cell, left } = followed('%%cuda\nint x;');
  cell.mimeType = PYTHON;
  expect(left).not.toHaveBeenCalled();
  cell.write('x = 1');
  expect([cell.mimeType, left.mock.calls.length]).toEqual([PYTHON, 1]);
  cell.write('%%cuda');
  expect(cell.told).toEqual([CUDA_MIME, PYTHON, CUDA_MIME]);
});

test('other cells take what the lab gives them', () => {
  const { cell, left } = followed('x = 1');
  cell.mimeType = PYTHON;
  cell.mimeType = 'text/x-julia';
  expect([cell.told, left.mock.calls.length]).toEqual([[PYTHON, 'text/x-julia'], 0]);
});

test('switched off, it gives every cell back', () => {
  const { cell, mode } = followed('%%cuda');
  cell.mimeType = PYTHON;
  mode.setEnabled(false);
  mode.check(cell as unknown as CodeEditor.IModel);
  expect(cell.mimeType).toBe(PYTHON);
});

test('what is no code cell, and what was never followed, is left alone', () => {
  const [cell, mode] = [new Cell('%%cuda'), new CudaMode(() => {})];
  mode.check(cell as unknown as CodeEditor.IModel);
  Object.defineProperty(cell, 'type', { value: 'raw' });
  mode.follow(cell as unknown as CodeEditor.IModel);
  expect(cell.told).toEqual([]);
});
