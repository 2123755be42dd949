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

  /** A status as the lab takes it: it changes before anybody hears of it. */
  hear(state: string, id: string, subshell: string | null = null): string {
    this.status = state;
    this.tell('status', { execution_state: state }, id, subshell);
    return this.status;
  }

  begin(id: string, subshell: string | null = null): void {
    this.hear('busy', id, subshell);
    this.tell('execute_input', {}, id, subshell);
  }

  private tell(kind: string, content: object, id: string, subshell: string | null): void {
    this.iopubMessage.emit({ header: { msg_type: kind }, content, parent_header: { msg_id: id, subshell_id: subshell } });
  }
}

test('a cell that runs stays busy until it ends, whatever ends meanwhile', () => {
  const context = new FakeContext();
  expect(context.hear('idle', 'a', 'sub')).toBe('idle');
  context.begin('b');
  expect(context.hear('idle', 'c', 'sub')).toBe('busy');
  expect(context.hear('idle', 'd')).toBe('busy'); // of the control channel
  expect(context.hear('idle', 'b')).toBe('idle');
  context.begin('e', 'sub');
  expect(context.hear('idle', 'f', 'sub')).toBe('idle');
});

test('what ran in a kernel that has ended is no reason to be busy', () => {
  for (const end of [(one: FakeContext) => one.kernelChanged.emit(), (one: FakeContext) => one.statusChanged.emit('restarting')]) {
    const context = new FakeContext();
    context.begin('a');
    end(context);
    expect(context.hear('idle', 'b')).toBe('idle');
  }
});
