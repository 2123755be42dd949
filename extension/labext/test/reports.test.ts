// What the kernel says of the cells: the newest answer counts, whatever else is asked meanwhile, and a closed notebook is let go of.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ICellModel } from '@jupyterlab/cells';
import { type INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Reports } from '../src/reports.js';

interface Asked {
  readonly action: string;
  answer(result: JSONObject): void;
}

const asked = vi.hoisted(() => [] as Asked[]);

vi.mock('@jupyterlab/cells', () => ({ isCodeCellModel: () => true }));
vi.mock('@jupyterlab/notebook', async () => {
  const { Signal } = await import('@lumino/signaling');
  return { NotebookActions: { executed: new Signal({}) } };
});
vi.mock('../src/control.js', async (original) => {
  const request = (_kernel: unknown, action: string) => new Promise<JSONObject>((answer) => asked.push({ action, answer }));
  return { ...(await original<object>()), request, requestPatiently: request };
});

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('window', globalThis);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('keeps what the last run left where the first one is still asked about the options', async () => {
  const cell = { id: 'a', executionCount: 1, sharedModel: { getSource: () => '%%cuda\nint x;' } };
  const notebook = {};
  const panel = { content: notebook, isDisposed: false, sessionContext: { session: { kernel: { id: 'kernel' } } }, model: { cells: [cell] } };
  const tracker = { find: () => panel, forEach: () => undefined, widgetAdded: { connect: () => undefined } };
  const reports = new Reports(tracker as unknown as INotebookTracker);
  const run = (): Promise<unknown> => {
    (NotebookActions.executed as unknown as Signal<unknown, object>).emit({ notebook });
    return vi.advanceTimersByTimeAsync(1_000);
  };
  const answer = (at: number, result: JSONObject): Promise<unknown> => {
    asked[at]?.answer(result);
    return vi.advanceTimersByTimeAsync(0);
  };
  await run();
  await run();
  await answer(0, { reports: {} });
  await answer(1, { reports: { a: { source: 'now', diagnostics: [], kernels: ['k'] } } });
  expect(asked.map(({ action }) => action)).toEqual(['reports', 'reports', 'options']);
  await answer(2, { options: [] });
  expect(reports.of(cell as unknown as ICellModel)?.kernels).toEqual(['k']);
});

it('keeps no notebook that was closed', async () => {
  vi.useRealTimers();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const opened = new Signal<object, object>({});
  const reports = new Reports({ find: () => undefined, forEach: () => undefined, widgetAdded: opened } as unknown as INotebookTracker);
  const panel = ((): WeakRef<object> => {
    const [ready, one] = [Promise.resolve(), { isDisposed: true }];
    const sessionContext = { ready, session: null, kernelChanged: new Signal(one), statusChanged: new Signal(one) };
    const created = Object.assign(one, { sessionContext, context: { ready }, model: { cells: [] }, disposed: new Signal(one) });
    opened.emit(created);
    return new WeakRef(created);
  })();
  await vi.waitFor(
    async () => {
      await new Promise((done) => setTimeout(done, 20)); // it is asked about once, a moment after it was opened
      collect();
      expect(panel.deref() === undefined).toBe(true); // a failure that holds the object would keep it
    },
    { timeout: 20_000 },
  );
  expect(reports.knows(null)).toBe(false);
});
