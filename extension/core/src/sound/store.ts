// A sound as far as the page has it: facts, picture and samples; asks the kernel for the samples that are soon to be heard.

import { Chunks } from './chunks.js';
import { type Asks, type Look, type Sound, read } from './messages.js';
import { Pace } from './pace.js';

/** Seconds of the sound that are here before they are heard. */
const AHEAD_S = 4;
/** What is not answered for so long is asked for again. */
const PATIENCE_S = 3;
const CHUNK_BYTES = 256 * 1024;
const [BYTES_PER_S, BURST_BYTES] = [800e3, 1e6];

export class SoundStore {
  sound: Sound | null = null;
  look: Look | null = null;
  chunks = new Chunks(1);
  private readonly pace = new Pace(BYTES_PER_S, BURST_BYTES);
  private readonly listeners = new Set<() => void>();
  private asked = -1;
  private askedAtS = 0;

  constructor(private readonly ask: (message: Asks) => void) {}

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  receive(content: unknown, buffers: readonly DataView[]): void {
    const message = read(content, buffers);
    if (message?.type === 'sound') {
      // Said again, to another page perhaps, it is the same sound: what is here stays.
      if (this.sound?.rate !== message.rate || this.sound.channels !== message.channels) this.chunks = new Chunks(message.channels);
      this.sound = message;
    } else if (message?.type === 'look') this.look = message;
    else if (message?.type === 'chunk' && this.sound) {
      const { at, frames, first, ended, samples } = message;
      this.sound = { ...this.sound, frames, first, ended };
      if (at === this.asked) this.asked = -1;
      if (samples.length > 0) this.chunks.add(at, samples);
    } else return;
    for (const listener of this.listeners) listener();
  }

  /** Samples from one on are soon to be heard: asks for the first that is not here. nowS: of any clock. */
  need(from: number, nowS: number): void {
    if (!this.sound) return;
    const { rate, frames, first } = this.sound;
    const start = Math.max(from, first);
    const until = Math.min(frames, start + AHEAD_S * rate);
    const missing = start + this.chunks.available(start, until - start);
    if (missing >= until) return;
    if (this.asked >= 0 && nowS - this.askedAtS < PATIENCE_S) return;
    if (!this.pace.take(CHUNK_BYTES, nowS)) return;
    [this.asked, this.askedAtS] = [missing, nowS];
    this.ask({ type: 'want', at: missing });
  }
}
