// Which of a kernel's states end its views.

import { Signal } from '@lumino/signaling';
import { expect, test } from 'vitest';
import { tellEnded } from '../src/ended.js';

test('views are told of the end of their kernel, and of no other state; its badges go', () => {
  const view = { dataset: {} as Record<string, string> };
  const sender = {};
  const [kernelChanged, statusChanged] = [new Signal<object, unknown>(sender), new Signal<object, string>(sender)];
  let badges = 1;
  const badge = { remove: () => badges-- };
  const node = { querySelectorAll: (kind: string) => (kind === '.gk-badge' ? [badge] : [view]) };
  tellEnded({ node, sessionContext: { kernelChanged, statusChanged } } as unknown as Parameters<typeof tellEnded>[0]);
  const hasEnded = (): boolean => {
    const ended = 'gkEnded' in view.dataset;
    expect(badges).toBe(ended ? 0 : 1);
    delete view.dataset['gkEnded'];
    badges = 1;
    return ended;
  };
  for (const status of ['starting', 'idle', 'busy', 'unknown', 'restarting', 'autorestarting', 'dead']) {
    statusChanged.emit(status);
    expect([status, hasEnded()]).toEqual([status, ['restarting', 'autorestarting', 'dead'].includes(status)]);
  }
  kernelChanged.emit({});
  expect(hasEnded()).toBe(true);
});
