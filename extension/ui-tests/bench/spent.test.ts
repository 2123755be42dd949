import { expect, test } from 'vitest';
import { drawnMore, type Profile, type Spent, spent, type TraceEvent } from './spent.ts';

const OWN = '/extensions/mine/';
const frame = (functionName: string, url = 'lab.js'): { functionName: string; url: string } => ({ functionName, url });
const OWN_FRAME = frame('hook', `http://host/lab${OWN}a.js`);
const drawing = (name: string, ms: number, objects: number, stack = [frame('show')], tid = 1): TraceEvent => ({
  name,
  pid: 1,
  tid,
  tdur: 1000 * ms,
  args: name === 'Layout' ? { beginData: { dirtyObjects: objects, stackTrace: stack } } : { elementCount: objects, beginData: { stackTrace: stack } },
});
const drew = (times: number, objects: number, ms: number): Spent => ({ own: 0, language: 0, drawn: new Map([['Layout show', { times, objects, ms }]]) });

test('samples share the time by what is on their stacks; those without a function have none', () => {
  const profile: Profile = {
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: [2, 3, 5, 6, 7] },
      { id: 2, callFrame: frame('(idle)') },
      { id: 3, callFrame: OWN_FRAME, children: [4] },
      { id: 4, callFrame: frame('called') },
      { id: 5, callFrame: frame('(program)') },
      { id: 6, callFrame: frame('other') },
      { id: 7, callFrame: frame('work'), children: [8, 9] },
      { id: 8, callFrame: frame('parse') },
      { id: 9, callFrame: OWN_FRAME },
    ],
    samples: [2, 2, 5, 3, 4, 6, 6, 6, 8, 9],
  };
  const { own, language } = spent(profile, [], 70, OWN);
  expect([own, language]).toEqual([30, 10]);
});

test('style and layout are told apart by who asked; what is the own, or of another thread, is left out', () => {
  const events = [drawing('Layout', 2, 5), drawing('Layout', 4, 7), drawing('UpdateLayoutTree', 1, 3), drawing('Layout', 9, 9, [frame('x'), OWN_FRAME]), drawing('Layout', 9, 9, [], 2)];
  expect([...spent({ nodes: [] }, events, 0, OWN).drawn]).toEqual([
    ['Layout show', { times: 2, objects: 12, ms: 6 }],
    ['UpdateLayoutTree show', { times: 1, objects: 3, ms: 1 }],
  ]);
});

test('what is drawn more has one price, and the dearer of times and objects counts', () => {
  // 40 ms for 20 times and for 400 objects: 2 ms a time, 0.1 ms an object; how long each of two took is of no matter.
  expect(drawnMore([drew(11, 200, 30)], [drew(9, 200, 10)])).toEqual([4]);
  expect(drawnMore([drew(10, 210, 10)], [drew(10, 190, 30)])).toEqual([2]);
  expect(drawnMore([drew(10, 150, 20)], [drew(10, 250, 20)])).toEqual([0]);
  expect(drawnMore([drew(10, 0, 20)], [{ own: 0, language: 0, drawn: new Map() }])).toEqual([20]);
});
