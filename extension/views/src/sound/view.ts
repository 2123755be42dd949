// The player: play, pause, seek by pointer and keyboard, volume; what cannot be played is said in words.

import { type SoundStore } from '@pygpukit/core';
import { el, setData, setText, withModifier } from '../dom.js';
import { type Theme, followTheme, readTheme } from '../theme.js';
import { Output, RATES } from './output.js';
import { left, opened } from './outputs.js';
import { SoundPicture } from './picture.js';

const PUMP_MS = 50;
/** A context that was asked to run and does not for so long is held back by the browser, or has no device. */
const BLOCKED_MS = 500;
const [STEP_S, LONG_STEP_S] = [1, 10];
const LIGHTS = { waiting: 'Waiting', ready: 'Ready', playing: 'Playing', blocked: 'Not playing' } as const;
type State = keyof typeof LIGHTS;
const BLOCKED = 'The browser plays no sound before something on this page was pressed: press Play.';
const SILENT = 'The browser was asked to play and does not: it may have no output device.';

export class PlayerView {
  readonly element: HTMLElement;
  private readonly about = el('span', 'gk-device');
  private readonly light = el('span', 'gk-light');
  private readonly play = el('button', 'gk-button gk-play', 'Play');
  private readonly time = el('span', 'gk-sound-time');
  private readonly volume = el('input', 'gk-volume');
  private readonly cursor = el('div', 'gk-cursor');
  private readonly picture: SoundPicture;
  private readonly note = el('p', 'gk-note');
  private readonly status = el('p', 'gk-sound-status');
  private readonly ending: (() => void)[] = [];
  private context: AudioContext | null = null;
  private output: Output | null = null;
  private theme: Theme;
  private place = 0;
  private timer = 0;
  private frame = 0;
  private startedAt = 0;
  private blocked = '';
  private wasBlocked = false;
  private autoplayed = false;

  constructor(
    host: HTMLElement,
    private readonly store: SoundStore,
  ) {
    this.picture = new SoundPicture(() => this.draw());
    const slider = this.picture.element;
    slider.append(this.cursor);
    slider.tabIndex = 0;
    slider.setAttribute('role', 'slider');
    slider.setAttribute('aria-label', 'Place in the sound');
    slider.setAttribute('aria-valuemin', '0');
    slider.addEventListener('pointerdown', (event) => this.drag(event));
    slider.addEventListener('keydown', (event) => this.key(event));
    Object.assign(this.volume, { type: 'range', min: '0', max: '1', step: '0.05', value: '1' });
    this.volume.setAttribute('aria-label', 'Volume');
    this.volume.addEventListener('input', () => this.output?.setVolume(Number(this.volume.value)));
    // A press lets the sound run before it is a click: that click is to play it, not to pause what has just begun.
    const pressed = (): boolean => (this.wasBlocked = this.blocked !== '');
    this.play.addEventListener('pointerdown', pressed);
    this.play.addEventListener('keydown', (event) => !event.repeat && pressed());
    this.play.addEventListener('click', () => {
      if (!this.wasBlocked) this.toggle();
      else this.start(this.place);
      this.wasBlocked = false;
    });
    this.status.setAttribute('role', 'status');
    this.element = el(
      'section',
      'gk-panel gk-player',
      el('header', 'gk-head', el('span', 'gk-title', 'Sound'), this.about, this.light),
      slider,
      el('div', 'gk-sound-controls', this.play, this.time, el('span', 'gk-sound-volume', 'Volume', this.volume)),
      this.note,
      this.status,
    );
    this.element.setAttribute('aria-label', 'Sound');
    this.element.addEventListener('keydown', (event) => {
      if (!withModifier(event)) event.stopPropagation(); // the lab would take it for a command
    });
    const near = (): boolean => navigator.userActivation.hasBeenActive && this.wake();
    this.element.addEventListener('pointerenter', near);
    this.element.addEventListener('focusin', near);
    host.append(this.element);
    this.theme = readTheme(this.element);
    this.ending.push(
      store.subscribe(() => this.heard()),
      followTheme(this.element, (theme) => {
        this.theme = theme;
        this.draw();
      }),
    );
    this.heard();
  }

  dispose(): void {
    this.pause();
    for (const end of this.ending) end();
    this.output?.dispose();
    if (this.context) left(this.context.sampleRate, this);
    this.picture.dispose();
    this.element.remove();
  }

  get playing(): boolean {
    return this.output?.place != null;
  }

  /** Something came of the kernel. */
  private heard(): void {
    const { sound } = this.store;
    if (sound?.autoplay && !this.autoplayed && sound.frames > 0) {
      this.autoplayed = true;
      this.start(sound.first);
    }
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      this.prepare();
    });
  }

  private toggle(): void {
    if (this.playing && this.context?.state === 'running') return this.pause();
    const { sound } = this.store;
    if (!sound) return;
    const atEnd = sound.ended && this.place >= sound.frames;
    this.start(atEnd ? sound.first : this.place);
  }

  /** Opens the output, which takes a moment: done as soon as the sound is seen. */
  private prepare(): void {
    const { sound } = this.store;
    if (this.context || !sound || sound.rate < RATES.min || sound.rate > RATES.max) return;
    try {
      this.context = opened(sound.rate, this);
    } catch {
      this.context = null; // why is said when Play is pressed
    }
  }

  /** Lets the output run: done as soon as somebody is about to press. False where there is none. */
  private wake(): boolean {
    const { sound } = this.store;
    if (!sound) return false;
    const { rate } = sound;
    if (rate < RATES.min || rate > RATES.max) {
      this.blocked = `No browser plays a rate of ${rate} Hz: resample() the sound to one from ${RATES.min} to ${RATES.max} Hz.`;
      return false;
    }
    try {
      this.context = opened(rate, this);
    } catch (error) {
      this.blocked = `The browser has no sound output: ${error instanceof Error ? error.message : String(error)}`;
      return false;
    }
    void this.context.resume();
    return true;
  }

  /** Plays from a sample on. */
  private start(from: number): void {
    const { sound } = this.store;
    if (!sound) return;
    if (!this.wake() || !this.context) return this.draw();
    this.output ??= new Output(this.context, this.store.chunks);
    this.output.setVolume(Number(this.volume.value));
    this.place = Math.max(from, sound.first);
    this.blocked = '';
    this.startedAt = performance.now();
    this.output.begin(this.place);
    this.pump();
    this.timer ||= window.setInterval(() => this.pump(), PUMP_MS);
    this.draw();
  }

  private pause(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.place = this.output?.place?.heard ?? this.place;
    this.blocked = '';
    this.output?.stop();
    this.draw();
  }

  /** Gives the browser what comes next, and asks for what comes after it. */
  private pump(): void {
    const { sound } = this.store;
    if (!sound || !this.output || !this.context) return;
    this.output.pump(sound.ended ? sound.frames : undefined);
    const place = this.output.place;
    if (!place) return;
    this.store.need(place.next, performance.now() / 1000);
    if (this.context.state !== 'running' && performance.now() - this.startedAt > BLOCKED_MS) {
      this.blocked = navigator.userActivation.hasBeenActive ? SILENT : BLOCKED;
    } else this.blocked = '';
    this.place = place.heard;
    if (sound.ended && place.next >= sound.frames && place.silent) {
      this.pause();
      this.place = sound.frames;
    }
    this.showPlace();
  }

  private draw(): void {
    const { sound, look } = this.store;
    if (sound) {
      const seconds = sound.frames / sound.rate;
      const channels = sound.channels === 1 ? 'mono' : 'stereo';
      setText(this.about, `${seconds.toFixed(2)} s \u00b7 ${sound.rate} Hz \u00b7 ${channels}${sound.ended ? '' : ' \u00b7 more to come'}`);
      setText(this.note, sound.note);
      this.picture.draw(this.theme, look, sound.frames, sound.rate);
    }
    this.note.hidden = !sound?.note;
    this.play.disabled = !sound || (sound.ended && sound.frames === 0);
    this.showPlace();
  }

  private showPlace(): void {
    const { sound } = this.store;
    const state: State = !sound ? 'waiting' : this.blocked ? 'blocked' : this.playing ? 'playing' : 'ready';
    const [rate, frames] = [sound?.rate ?? 1, sound?.frames ?? 0];
    setData(this.element, { state, gaps: this.output?.gaps ?? 0 });
    setText(this.light, LIGHTS[state]);
    setText(this.play, state === 'playing' ? 'Pause' : 'Play');
    setText(this.time, `${(this.place / rate).toFixed(1)} of ${(frames / rate).toFixed(1)} s`);
    const late = this.playing && this.output?.place?.silent && !this.blocked;
    setText(this.status, this.blocked || (late && this.place > 0 ? 'Waiting for more of the sound.' : sound && frames === 0 && sound.ended ? 'The sound is empty.' : ''));
    this.status.hidden = this.status.textContent === '';
    this.cursor.style.left = `${(100 * this.place) / Math.max(1, frames)}%`;
    const slider = this.picture.element;
    const now = String(Math.floor(this.place / rate));
    if (slider.getAttribute('aria-valuenow') !== now || slider.getAttribute('aria-valuemax') !== (frames / rate).toFixed(1)) {
      slider.setAttribute('aria-valuenow', now);
      slider.setAttribute('aria-valuemax', (frames / rate).toFixed(1));
      slider.setAttribute('aria-valuetext', `${now} of ${(frames / rate).toFixed(1)} seconds`);
    }
  }

  private seek(sample: number): void {
    const { sound } = this.store;
    if (!sound) return;
    const place = Math.round(Math.min(Math.max(sample, sound.first), sound.frames));
    if (this.playing) this.start(place);
    else {
      this.place = place;
      this.store.need(place, performance.now() / 1000);
      this.showPlace();
    }
  }

  private drag(event: PointerEvent): void {
    const slider = this.picture.element;
    const seek = ({ clientX }: PointerEvent): void => {
      const { left, width } = slider.getBoundingClientRect();
      this.seek(((clientX - left) / width) * (this.store.sound?.frames ?? 0));
    };
    slider.setPointerCapture(event.pointerId);
    slider.addEventListener('pointermove', seek);
    slider.addEventListener('lostpointercapture', () => slider.removeEventListener('pointermove', seek), { once: true });
    seek(event);
  }

  private key(event: KeyboardEvent): void {
    const { sound } = this.store;
    if (!sound || withModifier(event)) return;
    const step = STEP_S * sound.rate;
    const moves: Record<string, number> = {
      ArrowLeft: this.place - step,
      ArrowDown: this.place - step,
      ArrowRight: this.place + step,
      ArrowUp: this.place + step,
      PageDown: this.place - LONG_STEP_S * sound.rate,
      PageUp: this.place + LONG_STEP_S * sound.rate,
      Home: sound.first,
      End: sound.frames,
    };
    const to = moves[event.key];
    if (event.key === ' ') this.toggle();
    else if (to === undefined) return;
    else this.seek(to);
    event.preventDefault();
  }
}
