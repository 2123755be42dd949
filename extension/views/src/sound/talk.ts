// Push to talk: hold a button or its key to speak, see what was heard, hear the answer, interrupt it.

import { type TalkStore, type TalkTurn } from '@pygpukit/core';
import { el, setData, setText, syncRows, withModifier } from '../dom.js';
import { followTheme } from '../theme.js';
import { Microphone } from './microphone.js';
import { Output } from './output.js';

export type FromTalk = { readonly type: 'view' | 'press' | 'samples' | 'release' | 'stop' | 'refused'; readonly text?: string; readonly id?: number };

const PUMP_MS = 50;
/** What is still taken after the button is let go of: people do so while they say the last word. */
const TAIL_MS = 150;
const LIGHTS = {
  ready: 'Ready',
  opening: 'Asking for the microphone',
  listening: 'Listening',
  thinking: 'Thinking',
  speaking: 'Speaking',
  refused: 'No microphone',
} as const;
type State = keyof typeof LIGHTS;
const TOO_SOON = 'The microphone was not open yet: hold the button, and speak when it says Listening.';
const HOLD = 'Hold to speak';

export class TalkView {
  readonly element: HTMLElement;
  private readonly light = el('span', 'gk-light');
  private readonly turns = el('ol');
  private readonly log = el('div', 'gk-talk-turns', this.turns);
  private readonly button = el('button', 'gk-button gk-play gk-talk-hold', HOLD);
  private readonly interrupt = el('button', 'gk-button', 'Interrupt');
  private readonly level = el('meter', 'gk-level');
  private readonly status = el('p', 'gk-sound-status');
  private readonly ending: (() => void)[] = [];
  private microphone: Microphone | null = null;
  private held = false;
  private opening = false;
  private refused = '';
  private note = '';
  private context: AudioContext | null = null;
  private output: Output | null = null;
  private heardOf: TalkStore['sound'] = null;
  private timer = 0;
  private gone = false;

  constructor(
    host: HTMLElement,
    private readonly store: TalkStore,
    private readonly tell: (message: FromTalk, ...buffers: ArrayBuffer[]) => void,
  ) {
    Object.assign(this.level, { min: 0, max: 1, value: 0 });
    this.level.setAttribute('aria-label', 'Loudness');
    this.status.setAttribute('role', 'status');
    this.log.setAttribute('role', 'log');
    this.log.setAttribute('aria-label', 'What was said');
    this.log.tabIndex = 0;
    this.listenToButton();
    this.interrupt.addEventListener('click', () => this.stopAnswer());
    this.element = el(
      'section',
      'gk-panel gk-talk',
      el('header', 'gk-head', el('span', 'gk-title', 'Conversation by voice'), this.light),
      this.log,
      el('div', 'gk-sound-controls', this.button, this.interrupt, this.level),
      this.status,
    );
    this.element.setAttribute('aria-label', 'Conversation by voice');
    this.element.addEventListener('keydown', (event) => {
      if (!withModifier(event)) event.stopPropagation(); // the lab would take it for a command
    });
    host.append(this.element);
    this.ending.push(
      followTheme(this.element, () => undefined),
      store.subscribe(() => this.heard()),
    );
    this.heard();
  }

  dispose(): void {
    this.gone = true;
    this.microphone?.close();
    this.silence();
    for (const end of this.ending) end();
    void this.context?.close();
    this.element.remove();
  }

  /** Held by a pointer or a key; pressed once to begin and once to end where a screen reader only presses. */
  private listenToButton(): void {
    const { button } = this;
    const key = ({ key }: KeyboardEvent): boolean => key === ' ' || key === 'Enter';
    button.setAttribute('aria-pressed', 'false');
    button.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      button.setPointerCapture(event.pointerId);
      void this.press();
    });
    button.addEventListener('lostpointercapture', () => this.release());
    button.addEventListener('keydown', (event) => {
      if (!key(event) || withModifier(event)) return;
      event.preventDefault(); // else it is a press, too
      if (!event.repeat) void this.press();
    });
    button.addEventListener('keyup', (event) => {
      if (!key(event)) return;
      event.preventDefault();
      this.release();
    });
    button.addEventListener('click', ({ detail }) => {
      if (detail === 0) if (this.held) this.release(); else void this.press();
    });
    button.addEventListener('blur', () => this.release());
  }

  private async press(): Promise<void> {
    if (this.held || this.opening || this.store.rate === 0) return;
    Object.assign(this, { held: true, opening: true, refused: '', note: '' });
    this.silence();
    this.context ??= new AudioContext(); // here, since a press is what lets a page play
    void this.context.resume();
    this.tell({ type: 'press' });
    this.draw();
    try {
      const opened = await Microphone.open(this.store.rate, (samples) => this.block(samples), () => this.release());
      this.opening = false;
      if (this.held && !this.gone) this.microphone = opened;
      else {
        opened.close();
        this.note = TOO_SOON;
      }
    } catch (error) {
      this.opening = this.held = false;
      this.refused = error instanceof Error ? error.message : String(error);
      this.tell({ type: 'refused', text: this.refused });
    }
    this.draw();
  }

  private release(): void {
    if (!this.held) return;
    this.held = false;
    const { microphone } = this;
    if (microphone) {
      window.setTimeout(() => {
        microphone.close();
        this.microphone = null;
        this.level.value = 0;
        const id = Math.floor(Math.random() * 2 ** 31);
        this.store.await(id);
        this.tell({ type: 'release', id });
        this.draw();
      }, TAIL_MS);
    }
    this.draw();
  }

  private block(samples: Float32Array<ArrayBuffer>): void {
    this.level.value = samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    this.tell({ type: 'samples' }, samples.buffer);
  }

  private stopAnswer(): void {
    this.silence();
    this.tell({ type: 'stop' });
    this.draw();
    this.button.focus(); // the button that had it is off now
  }

  private silence(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.output?.stop();
    this.output = null;
    this.heardOf = null;
    this.store.silence();
  }

  /** Something came of the kernel. */
  private heard(): void {
    const { sound } = this.store;
    if (sound && sound !== this.heardOf && this.context) {
      this.context = this.contextOf(sound.rate, this.context);
      this.output?.stop();
      this.heardOf = sound;
      this.output = new Output(this.context, sound.chunks);
      this.output.begin(0);
      this.timer ||= window.setInterval(() => this.pump(), PUMP_MS);
      this.pump();
    }
    this.draw();
  }

  /** Buffers of a sound keep their rate where the context has it. */
  private contextOf(rate: number, context: AudioContext): AudioContext {
    if (context.sampleRate === rate) return context;
    void context.close();
    const opened = new AudioContext({ sampleRate: rate });
    void opened.resume();
    return opened;
  }

  private pump(): void {
    const { sound, busy } = this.store;
    if (!sound || !this.output) return;
    this.output.pump(busy ? undefined : sound.frames);
    const place = this.output.place;
    if (!busy && place && place.next >= sound.frames && place.silent) {
      window.clearInterval(this.timer);
      this.timer = 0;
      this.output.stop();
      this.output = null;
    }
    this.draw();
  }

  private get state(): State {
    if (this.opening) return 'opening';
    if (this.microphone) return 'listening';
    if (this.output?.place && !this.output.place.silent) return 'speaking';
    if (this.store.busy) return 'thinking';
    return this.refused ? 'refused' : 'ready';
  }

  private draw(): void {
    const { state, store } = this;
    setData(this.element, { state });
    setText(this.light, LIGHTS[state]);
    this.button.setAttribute('aria-pressed', String(this.held));
    this.interrupt.disabled = state !== 'speaking' && state !== 'thinking';
    const before = this.turns.textContent;
    syncRows(this.turns, store.turns, () => el('li', 'gk-talk-turn', el('p'), el('p')), fill);
    if (this.turns.textContent !== before) this.log.scrollTop = this.log.scrollHeight;
    this.log.hidden = store.turns.length === 0;
    setText(this.status, this.refused || this.note || store.note);
    this.status.hidden = this.status.textContent === '';
  }
}

function fill(row: HTMLElement, { heard, answer, interrupted }: TalkTurn): void {
  const [question, reply] = row.children;
  if (question) setText(question, `You: ${heard}`);
  if (reply) setText(reply, answer || interrupted ? `Answer: ${answer}${interrupted ? ' (interrupted)' : ''}` : '');
}
