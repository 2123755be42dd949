// Rows of the Gantt: the tasks that a window may show are found by halving, and none that it shows is left out.

import { describe, expect, it } from 'vitest';
import { Phase, Store, type Task, WAITING_FOR_RESUME, isTerminal } from '@pygpukit/core';
import { GROUPINGS, beginNs, evictedIn, evictedInRow, evictedText, isPaused, layoutRows, rowText, stateText, taskLines, untilNs, visibleTasks } from '../src/scheduler/lanes.js';

const NOW_NS = 1e6;

function addTask(store: Store, number: number, name: string, startNs: number, endNs: number): void {
  const phase = endNs === 0 ? Phase.Running : Phase.Succeeded;
  const end = isTerminal(phase) ? [{ phase, startNs: endNs, endNs }] : [];
  const spans = [{ phase: Phase.Running, startNs, endNs }, ...end];
  store.tasks.add({ number, name, phase, spans, reason: 0, stream: 0, facts: null, throttled: [], waits: [], kept: '', promised: [] });
}

/** Tasks of five tenants that overlap, of all lengths; every ninth is still running. */
function busyStore(): Store {
  const store = new Store();
  for (let n = 1; n <= 400; n++) {
    const began = (n * 7919) % 90_000;
    addTask(store, n, `tenant ${n % 5}`, began, n % 9 > 0 ? began + 1 + ((n * 104_729) % 20_000) : 0);
  }
  return store;
}

describe('visibleTasks', () => {
  for (const grouping of GROUPINGS) {
    it(`holds every task of a row that reaches into the window, in lanes by ${grouping}`, () => {
      const rows = layoutRows(busyStore(), grouping);
      expect(rows.flatMap(({ tasks }) => tasks)).toHaveLength(400);
      for (const fromNs of [-5000, 0, 40_000, 89_000, 200_000]) {
        const window = { fromNs, toNs: fromNs + 3000 };
        for (const row of rows) {
          const shown = row.tasks.filter((task) => beginNs(task) <= window.toNs && untilNs(task, NOW_NS) >= window.fromNs);
          expect(visibleTasks(row, window)).toEqual(expect.arrayContaining(shown));
        }
      }
    });
  }

  it('leaves out what ended before and what begins after', () => {
    const store = new Store();
    for (let n = 0; n < 1000; n++) addTask(store, n + 1, 'train', 100 * n, 100 * n + 90);
    const [row] = layoutRows(store, 'tenant');
    expect(visibleTasks(row!, { fromNs: 50_000, toNs: 50_350 }).map(({ number }) => number)).toEqual([501, 502, 503, 504]);
  });
});

describe('stateText', () => {
  const row = { number: 1, name: 'fit', phase: 'Queued', submittedNs: 0, startedNs: 0, finishedNs: 0 };
  const task = (phase: number, reason: number, paused?: boolean): Task => {
    const facts = paused === undefined ? null : { ...row, paused };
    return { number: 1, name: 'fit', phase, reason, spans: [], stream: 0, facts, throttled: [], waits: [], kept: '', promised: [] };
  };

  it('tells a pause from every other wait, and from the run before it', () => {
    const shown: [Task, string, boolean][] = [
      [task(Phase.Suspended, 0), 'Paused', true],
      [task(Phase.Queued, 33, true), 'Queued: paused', true],
      [task(Phase.Queued, WAITING_FOR_RESUME), 'Queued: paused', true], // before the facts come
      [task(Phase.Queued, WAITING_FOR_RESUME, false), 'Queued', false], // resumed since: no record says so
      [task(Phase.Queued, 33, false), 'Queued: waiting for memory', false],
      [task(Phase.Running, 0, true), 'Running 0 ns', false], // facts of before its end
      [task(Phase.Cancelled, 0, true), 'Cancelled', false],
    ];
    for (const [each, text, paused] of shown) {
      expect([stateText(each, 0).replace(/ 0.*/, ' 0 ns'), isPaused(each)]).toEqual([text, paused]);
    }
  });

  it('leaves out rows whose pause is no truth value', () => {
    const store = new Store();
    store.receive({ type: 'tasks', tNs: 1, rows: [{ ...row, paused: 'yes' }, { ...row, number: 2, paused: true }] }, []);
    expect([store.tasks.all.map(({ number }) => number), store.dropped]).toEqual([[2], 1]);
  });
});

describe('evictions', () => {
  const MiB = 2 ** 20;

  /** A task of a tenant that ended and one that runs; blocks were on the host between and during both. */
  function evictingStore(): Store {
    const store = new Store();
    store.timeNs = 1000;
    addTask(store, 1, 'fit', 100, 300);
    addTask(store, 2, 'fit', 500, 0);
    const block = { address: 1, tenant: 'fit', bytes: 2 * MiB };
    store.evictions.begin(block, 200);
    store.evictions.end(1, 600);
    store.evictions.begin({ ...block, bytes: MiB }, 900);
    return store;
  }

  it("are a task's while it lives, all of a tenant's in its lane, and none of a stream's", () => {
    const store = evictingStore();
    const [ended, running] = store.tasks.all as [Task, Task];
    expect(evictedIn(store, ended)).toEqual([{ startNs: 200, endNs: 300, bytes: 2 * MiB }]);
    expect(evictedIn(store, running)).toEqual([{ startNs: 500, endNs: 600, bytes: 2 * MiB }, { startNs: 900, endNs: 1000, bytes: MiB }]);
    const shown = GROUPINGS.map((grouping) => evictedInRow(store, layoutRows(store, grouping)[0]!, grouping));
    expect(shown).toEqual([evictedIn(store, ended), store.evictions.of('fit'), []]);
    addTask(store, 3, 'other', 100, 0);
    expect(evictedIn(store, store.tasks.get(3)!)).toEqual([]);
  });

  it('are words too: in the state while they last, on hover, in the table', () => {
    const store = evictingStore();
    const texts = (grouping: 'task' | 'tenant'): string[] => layoutRows(store, grouping).map((row) => rowText(store, row, grouping));
    expect([texts('task'), texts('tenant')]).toEqual([['Succeeded in 200 ns', 'Running 500 ns, 1 MiB evicted'], ['2 tasks, 1 MiB evicted']]);
    const evicted = evictedIn(store, store.tasks.get(2)!);
    expect(taskLines(store, store.tasks.get(2)!, evicted)).toContain('evicted to host memory: up to 2 MiB for 200 ns');
    expect(evictedText([], 1000)).toBe('');
    store.evictions.end(1, 1000);
    expect(texts('task').at(-1)).toBe('Running 500 ns');
  });
});
