// A kernel that has a sound, for a player in a plain page: it answers what the player asks as the widget's Python side does.

import { type Page } from '@playwright/test';

export interface StubSound {
  readonly rate: number;
  readonly frames: number;
  readonly ended?: boolean;
  readonly autoplay?: boolean;
  readonly note?: string;
}

declare global {
  interface Window {
    /** Sends samples `at` to `at + count` of the stub's tone; frames and ended tell how far the sound is by now. */
    give(at: number, count: number, frames: number, ended: boolean): void;
    /** Of each buffer that was given to an output, how far ahead of the output's clock it begins, in seconds. */
    leads(): number[];
  }
}

/** Sends the state and the picture, and from now on answers each `want` with up to 16384 samples. */
export async function giveSound(page: Page, { rate, frames, ended = true, autoplay = false, note = '' }: StubSound): Promise<void> {
  await page.evaluate(({ rate, frames, ended, autoplay, note }) => {
    const send = (content: object, ...arrays: ArrayBufferView[]): void =>
      window.receiveBuffers(content, arrays.map((one) => new DataView(one.buffer, one.byteOffset, one.byteLength)));
    const tone = (i: number): number => 0.5 * Math.sin((2 * Math.PI * 440 * (i + 1)) / rate);
    window.give = (at, count, frames, ended) =>
      send({ type: 'chunk', at, frames, first: 0, ended }, Float32Array.from({ length: count }, (_, i) => tone(at + i)));
    send({ type: 'sound', rate, channels: 1, frames, first: 0, ended, autoplay, note });
    const [columns, rows] = [64, 16];
    const bounds = Float32Array.from({ length: 2 * columns }, (_, i) => (i < columns ? -0.5 : 0.5));
    const levels = Uint8Array.from({ length: columns * rows }, (_, i) => i % 256);
    const colours = Uint8Array.from({ length: 768 }, (_, i) => i % 256);
    if (frames > 0) send({ type: 'look', first: 0, frames, columns, rows }, bounds, levels, colours);
    window.answerWants = (at) => window.give(at, Math.max(0, Math.min(16384, frames - at)), frames, ended);
  }, { rate, frames, ended, autoplay, note });
}

/** What the player was told to connect to the output also goes to `heard()`, which is the loudest of the last samples. */
export async function listen(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const connect = AudioNode.prototype.connect as (this: AudioNode, to: AudioNode | AudioParam) => AudioNode;
    Object.assign(AudioNode.prototype, {
      connect(this: AudioNode, to: AudioNode | AudioParam) {
        if (to instanceof AudioDestinationNode) {
          const analyser = new AnalyserNode(this.context, { fftSize: 2048 });
          connect.call(this, analyser);
          const samples = new Float32Array(2048);
          window.heard = () => {
            analyser.getFloatTimeDomainData(samples);
            return samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
          };
        }
        return connect.call(this, to);
      },
    });
    window.heard = () => 0;
    const leads: number[] = [];
    const start = AudioBufferSourceNode.prototype.start as (this: AudioBufferSourceNode, when?: number) => void;
    AudioBufferSourceNode.prototype.start = function (this: AudioBufferSourceNode, when = 0) {
      leads.push(when - this.context.currentTime);
      start.call(this, when);
    };
    window.leads = () => leads;
    const opened: AudioContext[] = [];
    window.AudioContext = class extends AudioContext {
      constructor(options?: AudioContextOptions) {
        super(options);
        opened.push(this);
      }
    };
    window.contexts = () => opened.map(({ state }) => state);
  });
}
