// The page's end of the control channel, version 1 (docs/seams.md): one comm in one subshell for a kernel, kept open.

import type { Kernel } from '@jupyterlab/services';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

const TARGET = 'pygpukit.control.v1';
const TIMEOUT_MS = 5000;
const SUBSHELL_MS = 3000;

/** The kernel has not answered in time. `answer` is what it says when the running cell ends; null where no cell can be the reason. */
export class Late extends Error {
  constructor(readonly answer: Promise<JSONObject> | null) {
    super('The kernel has not answered yet: it answers when the running cell ends.');
  }
}

const channels = new WeakMap<Kernel.IKernelConnection, Channel>();

/** Sends one request and resolves to its result. Rejects with one sentence for the user. */
export async function request(kernel: Kernel.IKernelConnection, action: string, args: JSONObject = {}): Promise<JSONObject> {
  let channel = channels.get(kernel);
  if (!channel?.usable) channels.set(kernel, (channel = new Channel(kernel)));
  return channel.request(action, args);
}

/** The same for who can wait, however long a cell runs. `late` is told whenever there was no answer in time. */
export async function requestPatiently(
  kernel: Kernel.IKernelConnection,
  action: string,
  args: JSONObject,
  late: (error: Late) => void = () => undefined,
): Promise<JSONObject> {
  let asked = request(kernel, action, args);
  for (;;) {
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof Late)) throw error;
      late(error);
      asked = error.answer ?? request(kernel, action, args);
    }
  }
}

interface Waiting {
  readonly resolve: (result: JSONObject) => void;
  readonly reject: (error: Error) => void;
  readonly timer: number;
}

class Channel {
  private readonly comm: Kernel.IComm;
  private readonly opened: Promise<void>;
  private readonly waiting = new Map<number, Waiting>();
  private next = 1;
  private ended = false;

  constructor(private readonly kernel: Kernel.IKernelConnection) {
    this.comm = kernel.createComm(TARGET);
    this.comm.onClose = () => this.end(new Error('This kernel does not know pygpukit: run "%load_ext pygpukit" in a cell first.'));
    this.comm.onMsg = ({ content }) => this.receive(content.data);
    kernel.statusChanged.connect(this.kernelStatus, this);
    kernel.disposed.connect(this.kernelGone, this);
    this.opened = this.open();
  }

  /** A restart takes the comm away; whoever asks next opens another. */
  get usable(): boolean {
    return !this.ended && !this.comm.isDisposed;
  }

  /** Whether it is answered while a cell runs. */
  private get apart(): boolean {
    return this.kernel.supportsSubshells && this.comm.commsOverSubshells !== 'disabled';
  }

  request(action: string, args: JSONObject): Promise<JSONObject> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, timer: window.setTimeout(() => this.late(id), TIMEOUT_MS) });
      void this.opened.then(() => {
        if (this.waiting.has(id) && this.usable) this.comm.send({ id, action, args });
      });
    });
  }

  /**
   * Waits for the comm's subshell: opened earlier, the comm would go to the main shell and wait behind the running cell.
   * A kernel without subshells, or that makes none in time, answers there, between cells.
   */
  private async open(): Promise<void> {
    await this.kernel.info;
    const { subshellStarted } = this.comm as { subshellStarted?: Promise<void> };
    if (this.apart && subshellStarted) {
      const late = new Promise<boolean>((done) => window.setTimeout(() => done(false), SUBSHELL_MS));
      const started = subshellStarted.then(
        () => true,
        () => false,
      );
      // All that is sent goes the same way, or a request could overtake the opening.
      if (!(await Promise.race([started, late]))) this.comm.commsOverSubshells = 'disabled' as Kernel.IComm['commsOverSubshells'];
    }
    if (this.usable) this.comm.open();
  }

  private receive(data: JSONValue): void {
    const id = isObject(data) ? Number(data['id']) : NaN;
    const one = this.waiting.get(id);
    if (!one) return;
    this.forget(id, one);
    const answer = parseAnswer(data);
    if (answer instanceof Error) one.reject(answer);
    else one.resolve(answer);
  }

  /**
   * A kernel that answers between cells, or that cannot be asked yet, has the request still before it. Where a running cell is
   * no reason to be late something is wrong with this comm: the next request has another.
   */
  private late(id: number): void {
    const one = this.waiting.get(id);
    if (!one) return;
    if (!this.apart) {
      const answer = new Promise<JSONObject>((resolve, reject) => this.waiting.set(id, { resolve, reject, timer: 0 }));
      answer.catch(() => undefined); // nobody need wait for it
      one.reject(new Late(answer));
      return;
    }
    const error = new Late(null);
    this.forget(id, one);
    one.reject(error);
    if (!this.usable) return;
    this.end(error);
    this.comm.close();
  }

  private forget(id: number, { timer }: Waiting): void {
    window.clearTimeout(timer);
    this.waiting.delete(id);
  }

  private kernelStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') this.kernelGone();
  }

  private kernelGone(): void {
    this.end(new Error('The kernel ended before it answered.'));
  }

  private end(error: Error): void {
    if (this.ended) return;
    this.ended = true;
    this.kernel.statusChanged.disconnect(this.kernelStatus, this);
    this.kernel.disposed.disconnect(this.kernelGone, this);
    for (const [id, one] of this.waiting) {
      this.forget(id, one);
      one.reject(error);
    }
  }
}

export function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseAnswer(data: JSONValue): JSONObject | Error {
  if (isObject(data) && data['ok'] === true && isObject(data['result'])) return data['result'];
  if (isObject(data) && data['ok'] === false) return new Error(`The kernel refused: ${String(data['error'])}`);
  return new Error('The kernel sent an answer that is not of control channel version 1.');
}
