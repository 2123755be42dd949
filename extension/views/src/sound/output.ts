// Plays the samples of a queue through the browser: every piece is a buffer that begins at its own sample of the output's clock.
//
// Scheduled buffers, and no AudioWorklet, since pages without HTTPS have none. The context has the sound's own rate, so that nothing is
// resampled before the device.

import { type Chunks, Queue } from '@pygpukit/core';

/** What is given to the browser before it is heard: a page that is busy for less is not heard. */
const AHEAD_S = 1.5;
const LEAD_S = 0.02;
const PIECE_S = 0.1;
/** Browsers have contexts of these rates, in Hz. */
export const RATES = { min: 3000, max: 192_000 } as const;

export class Output {
  private readonly volume: GainNode;
  private readonly playing = new Set<AudioBufferSourceNode>();
  private queue: Queue | null = null;

  constructor(
    readonly context: BaseAudioContext,
    private readonly chunks: Chunks,
  ) {
    this.volume = context.createGain();
    this.volume.connect(context.destination);
  }

  get gaps(): number {
    return this.queue?.gaps ?? 0;
  }

  setVolume(value: number): void {
    this.volume.gain.value = value;
  }

  /** From now on the sound is heard from this sample on. */
  begin(from: number): void {
    this.stop();
    const { sampleRate } = this.context;
    const samples = (seconds: number): number => Math.ceil(seconds * sampleRate);
    this.queue = new Queue(sampleRate, { ahead: samples(AHEAD_S), lead: samples(LEAD_S), longest: samples(PIECE_S) }, from);
  }

  /** Gives the browser what is here and soon due; to be called several times in AHEAD_S. end: of the sound, where it is known. */
  pump(end?: number): void {
    for (const { from, count, at } of this.queue?.take(this.now, (from, max) => this.chunks.available(from, max), end) ?? []) {
      const buffer = this.context.createBuffer(this.chunks.channels, count, this.context.sampleRate);
      this.chunks.read(from, count).forEach((channel, i) => buffer.copyToChannel(channel, i));
      const source = this.context.createBufferSource();
      source.buffer = buffer;
      source.connect(this.volume);
      source.onended = () => {
        source.disconnect();
        this.playing.delete(source);
      };
      source.start(at / this.context.sampleRate);
      this.playing.add(source);
    }
  }

  /** The sample that is heard now, and the next one that is wanted; null while nothing plays. */
  get place(): { readonly heard: number; readonly next: number; readonly silent: boolean } | null {
    const { queue, now } = this;
    return queue && { heard: queue.heard(now), next: queue.next, silent: queue.silent(now) };
  }

  stop(): void {
    for (const source of this.playing) {
      source.onended = null;
      source.stop();
      source.disconnect();
    }
    this.playing.clear();
    this.queue = null;
  }

  dispose(): void {
    this.stop();
    this.volume.disconnect();
  }

  private get now(): number {
    return Math.round(this.context.currentTime * this.context.sampleRate);
  }
}
