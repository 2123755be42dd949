// One comm a kernel serves every request; whatever happens to it each request has one answer, and the next one a comm.

import type { Kernel } from '@jupyterlab/services';
import type { JSONObject, JSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Late, request, requestPatiently } from '../src/control.js';

interface Sent {
  readonly id: number;
  readonly action: string;
  readonly args: JSONObject;
}

class Comm {
  onMsg: (message: { content: { data: JSONValue } }) => void = () => undefined;
  onClose: () => void = () => undefined;
  isDisposed = false;
  opened = 0;
  closed = 0;
  commsOverSubshells = 'perCommTarget';
  readonly sent: Sent[] = [];

  constructor(readonly subshellStarted: Promise<void>) {}

  open(): void {
    this.opened++;
  }

  send(data: Sent): void {
    if (this.isDisposed || !this.opened) throw new Error('Cannot send');
    this.sent.push(data);
  }

  close(): void {
    this.closed++;
    this.onClose();
    this.isDisposed = true;
  }

  answer(id: number, result: JSONObject): void {
    this.onMsg({ content: { data: { id, ok: true, result } } });
  }
}

class FakeKernel {
  readonly statusChanged = new Signal<this, string>(this);
  readonly disposed = new Signal<this, void>(this);
  readonly comms: Comm[] = [];

  constructor(
    readonly supportsSubshells: boolean,
    private readonly subshell: Promise<void> = Promise.resolve(),
    readonly info: Promise<void> = Promise.resolve(),
  ) {}

  createComm(target: string): Comm {
    expect(target).toBe('pygpukit.control.v1');
    const comm = new Comm(this.subshell);
    this.comms.push(comm);
    return comm;
  }

  get connection(): Kernel.IKernelConnection {
    return this as unknown as Kernel.IKernelConnection;
  }

  ask(action: string): Promise<JSONObject | Error> {
    return request(this.connection, action).catch((error: Error) => error);
  }

  /** What is said to who waits however long: each "late", then the answer. */
  askPatiently(action: string): string[] {
    const said: string[] = [];
    void requestPatiently(this.connection, action, {}, () => said.push('late')).then(
      (result) => said.push(JSON.stringify(result)),
      (error: Error) => said.push(error.message),
    );
    return said;
  }

  last(): Comm {
    return this.comms.at(-1) as Comm;
  }
}

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('window', globalThis);
});
afterEach(() => vi.useRealTimers());

it('sends all requests on one comm, and each gets the answer with its id', async () => {
  const kernel = new FakeKernel(true);
  const [status, options] = [kernel.ask('status'), kernel.ask('options')];
  await settle();
  const [comm] = kernel.comms as [Comm];
  expect(comm.sent.map(({ action }) => action)).toEqual(['status', 'options']);
  const [first, second] = comm.sent as [Sent, Sent];
  comm.answer(second.id, { which: 'options' });
  comm.answer(first.id, { which: 'status' });
  comm.answer(first.id, { which: 'again' });
  expect(await Promise.all([status, options])).toEqual([{ which: 'status' }, { which: 'options' }]);
  const third = kernel.ask('view');
  await settle();
  comm.onMsg({ content: { data: { id: 3, ok: false, error: 'no such view' } } });
  expect(await third).toEqual(new Error('The kernel refused: no such view'));
  expect([kernel.comms.length, comm.opened, comm.closed]).toEqual([1, 1, 0]);
});

it('waits for the subshell, and goes without one where none comes', async () => {
  const kernel = new FakeKernel(true, new Promise(() => undefined));
  void kernel.ask('status');
  await vi.advanceTimersByTimeAsync(2_999);
  expect(kernel.last().opened).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect([kernel.last().opened, kernel.last().sent.length, kernel.last().commsOverSubshells]).toEqual([1, 1, 'disabled']);
});

it('keeps the comm of a kernel that answers between cells, and gives its late answers to who still waits', async () => {
  const kernel = new FakeKernel(false);
  const first = kernel.ask('status');
  const patient = kernel.askPatiently('view');
  await vi.advanceTimersByTimeAsync(5_000);
  const late = (await first) as Late;
  expect(late.message).toBe('The kernel has not answered yet: it answers when the running cell ends.');
  const third = kernel.ask('status');
  await settle();
  for (const id of [1, 2, 3]) kernel.last().answer(id, { n: id });
  expect(await Promise.all([late.answer, third])).toEqual([{ n: 1 }, { n: 3 }]);
  expect(patient).toEqual(['late', '{"n":2}']);
  expect([kernel.comms.length, kernel.last().closed]).toEqual([1, 0]);
});

it('asks a kernel that was busy when the page came as soon as it says what it is', async () => {
  let tell = (): void => undefined;
  const kernel = new FakeKernel(false, Promise.resolve(), new Promise((told) => (tell = told)));
  const said = kernel.askPatiently('view');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([said, kernel.last().opened]).toEqual([['late'], 0]);
  tell();
  await settle();
  expect(kernel.last().sent.map(({ action }) => action)).toEqual(['view']);
  kernel.last().answer(1, { model: 'm' });
  await settle();
  expect(said).toEqual(['late', '{"model":"m"}']);
});

it('gives up the comm of a kernel that should have answered while a cell runs', async () => {
  const kernel = new FakeKernel(true);
  const asked = [kernel.ask('status'), kernel.ask('options')];
  const patient = kernel.askPatiently('view');
  await vi.advanceTimersByTimeAsync(5_000);
  for (const one of await Promise.all(asked)) expect(one).toMatchObject({ answer: null, message: new Late(null).message });
  expect(kernel.comms.map(({ closed }) => closed)).toEqual([1, 0]);
  const next = kernel.ask('status');
  await settle();
  expect(kernel.comms.length).toBe(2);
  kernel.last().answer(1, { model: 'm' });
  kernel.last().answer(2, { n: 2 });
  expect(await next).toEqual({ n: 2 });
  expect(patient).toEqual(['late', '{"model":"m"}']);
});

it('says to who waits that the kernel ended', async () => {
  const kernel = new FakeKernel(false);
  const said = kernel.askPatiently('view');
  await vi.advanceTimersByTimeAsync(5_000);
  kernel.disposed.emit();
  await settle();
  expect(said).toEqual(['late', 'The kernel ended before it answered.']);
});

it('tells a kernel that does not know it apart, and asks it anew the next time', async () => {
  const kernel = new FakeKernel(true);
  const refused = kernel.ask('status');
  await settle();
  kernel.last().onClose();
  expect(await refused).toEqual(new Error('This kernel does not know pygpukit: run "%load_ext pygpukit" in a cell first.'));
  void kernel.ask('status');
  await settle();
  expect(kernel.comms.length).toBe(2);
});

it.each(['restarting', 'autorestarting', 'dead'])('answers what waits when the kernel is %s, and opens another comm then', async (status) => {
  const kernel = new FakeKernel(true);
  const waiting = kernel.ask('status');
  await settle();
  kernel.statusChanged.emit('busy');
  kernel.statusChanged.emit(status);
  expect(await waiting).toEqual(new Error('The kernel ended before it answered.'));
  kernel.last().isDisposed = true;
  void kernel.ask('status');
  await settle();
  expect(kernel.comms.length).toBe(2);
  expect(kernel.last().sent.map(({ action }) => action)).toEqual(['status']);
});

it('answers what waits when the connection is disposed of', async () => {
  const kernel = new FakeKernel(true);
  const waiting = kernel.ask('status');
  await settle();
  kernel.disposed.emit();
  expect(await waiting).toEqual(new Error('The kernel ended before it answered.'));
});
