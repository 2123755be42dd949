// Requests of a page and their answers over any transport: one answer a request, right or wrong, or none in time.

export type Send = (content: unknown) => void;

/** When a control that waits says so: in the page before 200 ms have passed, and later than a kernel that can answer does. */
export const QUEUED_AFTER_MS = 150;
const MAX_WAITING = 64;

interface Waiting {
  resolve(result: Record<string, unknown>): void;
  reject(error: Error): void;
}

/** Requests go out as {"type": "request", id, action, args}; answers come back as {"type": "answer", id, ok, result or error}. */
export class Channel {
  private readonly waiting = new Map<number, Waiting>();
  private next = 1;
  /** Answers that no request waited for, and answers that could not be read. */
  dropped = 0;

  constructor(private readonly send: Send) {}

  /** Resolves when the kernel answers, however late; rejects with the kernel's sentence. */
  request(action: string, args: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>> {
    if (this.waiting.size >= MAX_WAITING) {
      return Promise.reject(new Error(`${MAX_WAITING} requests wait for the kernel: let it answer first.`));
    }
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ type: 'request', id, action, args });
    });
  }

  /** Takes an answer; false when the message is something else. */
  receive(content: unknown): boolean {
    if (typeof content !== 'object' || content === null) return false;
    const { type, id, ok, result, error } = content as Record<string, unknown>;
    if (type !== 'answer') return false;
    const waiting = typeof id === 'number' ? this.waiting.get(id) : undefined;
    if (!waiting) {
      this.dropped++;
      return true;
    }
    this.waiting.delete(id as number);
    if (ok === true && typeof result === 'object' && result !== null) waiting.resolve(result as Record<string, unknown>);
    else waiting.reject(new Error(typeof error === 'string' ? error : 'The kernel sent an answer that cannot be read.'));
    return true;
  }

  /** The page ends: what still waits is told. */
  close(): void {
    for (const { reject } of this.waiting.values()) reject(new Error('The view was closed.'));
    this.waiting.clear();
  }
}
