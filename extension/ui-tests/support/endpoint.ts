// The endpoint of `pygpukit serve` with a model without weights, whose tokens come when a test lets them.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Readable, type Writable } from 'node:stream';

const PYTHON = process.env['PYGPUKIT_PYTHON'] ?? 'python';
const STUB = join(import.meta.dirname, '../../../tests/support/endpoint_stub.py');

export class Endpoint {
  private constructor(
    private readonly process: ChildProcessByStdio<Writable, Readable, null>,
    /** Address of the page. */
    readonly url: string,
    readonly key: string,
  ) {}

  static async start(): Promise<Endpoint> {
    const process = spawn(PYTHON, [STUB], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: process.stdout });
    const [line] = (await Promise.race([once(lines, 'line'), once(process, 'exit').then(() => ['the endpoint ended'])])) as [string];
    const [url, key] = line.split(' ');
    if (!url?.startsWith('http:') || key === undefined) throw new Error(line);
    return new Endpoint(process, url, key);
  }

  /** Lets so many tokens of the answer to a question come, the first of which is 1; it may be asked later. */
  release(question: number, count: number): void {
    this.process.stdin.write(`${question} ${count}\n`);
  }

  /** Ends it, as the end of its input does. */
  async stop(): Promise<void> {
    const ended = once(this.process, 'exit');
    this.process.stdin.end();
    await ended;
  }
}
