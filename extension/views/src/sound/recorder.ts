// The recorder: record, stop, how loud it is, how much is there; blocks go to the kernel as they come.

import { el, setData, setText, withModifier } from '../dom.js';
import { followTheme } from '../theme.js';
import { Microphone } from './microphone.js';

export interface RecorderState {
  readonly type: 'state' | 'stop';
  readonly rate: number;
  /** Samples that the kernel keeps. */
  readonly kept: number;
}

export type FromRecorder = { readonly type: 'view' | 'samples' | 'recording' | 'stopped' | 'refused'; readonly text?: string };

const LIGHTS = { ready: 'Ready', opening: 'Asking for the microphone', recording: 'Recording', refused: 'Not recording' } as const;

export class RecorderView {
  readonly element: HTMLElement;
  private readonly button = el('button', 'gk-button gk-play', 'Record');
  private readonly light = el('span', 'gk-light');
  private readonly about = el('span', 'gk-device');
  private readonly level = el('meter', 'gk-level');
  private readonly time = el('span', 'gk-sound-time');
  private readonly status = el('p', 'gk-sound-status');
  private readonly ending: () => void;
  private microphone: Microphone | null = null;
  private state: keyof typeof LIGHTS = 'ready';
  private rate = 0;
  private recorded = 0;
  private gone = false;

  constructor(
    host: HTMLElement,
    private readonly tell: (message: FromRecorder, ...buffers: ArrayBuffer[]) => void,
  ) {
    Object.assign(this.level, { min: 0, max: 1, value: 0 });
    this.level.setAttribute('aria-label', 'Loudness');
    this.status.setAttribute('role', 'status');
    this.button.addEventListener('click', () => (this.state === 'recording' ? this.stop() : void this.record()));
    this.element = el(
      'section',
      'gk-panel gk-recorder',
      el('header', 'gk-head', el('span', 'gk-title', 'Microphone'), this.about, this.light),
      el('div', 'gk-sound-controls', this.button, this.level, this.time),
      this.status,
    );
    this.element.setAttribute('aria-label', 'Microphone');
    this.element.addEventListener('keydown', (event) => {
      if (!withModifier(event)) event.stopPropagation(); // the lab would take it for a command
    });
    host.append(this.element);
    this.ending = followTheme(this.element, () => undefined);
    this.show('ready', '');
  }

  receive({ type, rate, kept }: RecorderState): void {
    if (type === 'stop') return this.stop();
    this.rate = rate;
    this.recorded = kept;
    setText(this.about, `${rate} Hz \u00b7 mono`);
    this.showTime();
  }

  dispose(): void {
    this.gone = true;
    this.stop();
    this.ending();
    this.element.remove();
  }

  private async record(): Promise<void> {
    if (this.rate === 0 || this.state === 'opening') return;
    this.show('opening', '');
    try {
      const opened = await Microphone.open(this.rate, (samples) => this.block(samples), () => this.stop());
      if (this.gone) return opened.close();
      this.microphone = opened;
      this.show('recording', '');
      this.tell({ type: 'recording' });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.show('refused', text);
      this.tell({ type: 'refused', text });
    }
  }

  private stop(): void {
    if (!this.microphone) return;
    this.microphone.close();
    this.microphone = null;
    this.show('ready', '');
    this.tell({ type: 'stopped' });
  }

  private block(samples: Float32Array<ArrayBuffer>): void {
    this.recorded += samples.length;
    this.level.value = samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    this.showTime();
    this.tell({ type: 'samples' }, samples.buffer);
  }

  private showTime(): void {
    setText(this.time, `${(this.recorded / Math.max(1, this.rate)).toFixed(1)} s recorded`);
  }

  private show(state: keyof typeof LIGHTS, text: string): void {
    this.state = state;
    setData(this.element, { state });
    setText(this.light, LIGHTS[state]);
    setText(this.button, state === 'recording' ? 'Stop' : 'Record');
    setText(this.status, text);
    this.status.hidden = text === '';
    if (state !== 'recording') this.level.value = 0;
  }
}
