// The kernel's status while a cell runs and subshells answer: busy from the cell's begin to its end.

import { Signal } from '@lumino/signaling';
import { expect, test } from 'vitest';
import { staysBusy } from '../src/busy.js';

class FakeContext {
  readonly kernelChanged = new Signal<this, void>(this);
  readonly statusChanged = new Signal<this, string>(this);
  readonly iopubMessage = new Signal<this, object>(this);
  status = 'idle';
  readonly session = { kernel: { _updateStatus: (status: string) => (this.status = status) } };

  constructor() {
    staysBusy({ sessionContext: this } as unknown as Parameters<typeof staysBusy>[0]);
  }

  /** A message as the lab takes it: the status changes before anybody hears of it. */
  hear(state: string, id: string, kind: string, subshell?: string): string {
    this.status = state;
    this.iopubMessage.emit({ header: { msg_type: 'status' }, content: { execution_state: state }, parent_header: { msg_id: id, msg_type: kind, subshell_id: subshell } });
    return this.status;
  }
}

test('a cell that runs stays busy until it ends, whatever ends meanwhile', () => {
  const context = new FakeContext();
  expect(context.hear('idle', 'a', 'comm_msg', 'sub')).toBe('idle');
  expect(context.hear('busy', 'b', 'execute_request')).toBe('busy');
  expect(context.hear('idle', 'c', 'comm_msg', 'sub')).toBe('busy');
  expect(context.hear('idle', 'd', 'execute_request', 'sub')).toBe('busy');
  expect(context.hear('idle', 'e', 'create_subshell_request')).toBe('busy');
  expect(context.hear('idle', 'b', 'execute_request')).toBe('idle');
  expect(context.hear('idle', 'f', 'comm_msg', 'sub')).toBe('idle');
});

test('what ran in a kernel that has ended is no reason to be busy', () => {
  for (const end of [(one: FakeContext) => one.kernelChanged.emit(), (one: FakeContext) => one.statusChanged.emit('restarting')]) {
    const context = new FakeContext();
    context.hear('busy', 'a', 'execute_request');
    end(context);
    expect(context.hear('idle', 'b', 'comm_msg')).toBe('idle');
  }
});
