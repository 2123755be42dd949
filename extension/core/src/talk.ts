// What the kernel tells of a conversation by voice: its turns, and the sound of the newest answer.

import { Chunks } from './sound/chunks.js';

export interface TalkTurn {
  readonly heard: string;
  readonly answer: string;
  readonly interrupted: boolean;
}

interface State {
  readonly type: 'state';
  /** Samples a second that the kernel wants of the microphone. */
  readonly rate: number;
  readonly busy: boolean;
  readonly note: string;
  readonly turns: readonly TalkTurn[];
}

interface Changed {
  readonly type: 'turn';
  readonly number: number;
  readonly busy: boolean;
  readonly note: string;
  readonly turn: TalkTurn | null;
}

interface Spoken {
  readonly type: 'sound';
  /** What the page called the question. */
  readonly id: number;
  readonly rate: number;
  readonly at: number;
}

const typeOf = (content: unknown): unknown =>
  typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;

export class TalkStore {
  turns: readonly TalkTurn[] = [];
  rate = 0;
  /** Whether an answer is being computed. */
  busy = false;
  note = '';
  /** The sound of the answer that this page waits for, so many samples of it by now; a new one for each answer. */
  sound: { readonly rate: number; readonly chunks: Chunks; frames: number } | null = null;
  private readonly listeners = new Set<() => void>();
  private awaited = -1;

  /** A message of our own kernel; what is none is left aside. */
  receive(content: unknown, buffers: readonly DataView[]): void {
    const type = typeOf(content);
    if (type === 'state') {
      const { rate, busy, note, turns } = content as State;
      Object.assign(this, { rate, busy, note, turns });
    } else if (type === 'turn') {
      const { number, busy, note, turn } = content as Changed;
      Object.assign(this, { busy, note });
      if (turn) this.turns = [...this.turns.slice(0, number), turn, ...this.turns.slice(number + 1)];
    } else if (type === 'sound') this.add(content as Spoken, buffers[0]);
    else return;
    this.listeners.forEach((listener) => listener());
  }

  /** From now on the answer to this question is heard, and no other. */
  await(id: number): void {
    this.awaited = id;
    this.sound = null;
  }

  /** No answer is heard from now on. */
  silence(): void {
    this.await(-1);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private add({ id, rate, at }: Spoken, buffer: DataView | undefined): void {
    if (!buffer || id !== this.awaited) return;
    this.sound ??= { rate, chunks: new Chunks(1), frames: 0 };
    const bytes = new Uint8Array(buffer.buffer as ArrayBuffer, buffer.byteOffset, buffer.byteLength);
    const samples = new Float32Array(bytes.slice().buffer); // copied, since a view into a message may begin anywhere
    this.sound.chunks.add(at, samples);
    this.sound.frames = at + samples.length;
  }
}
