// A chat: the log, the line of figures, the field to ask in. The kernel holds the conversation; this shows it and asks.

import { format } from '@pygpukit/core';
import { el, setData, setText } from '../dom.js';
import { readTheme, watchTheme } from '../theme.js';
import { copy, insertCell } from './insert.js';
import type { Figures, FromKernel, ToKernel } from './messages.js';
import { Row, type RowActions } from './row.js';

/** Who is as near to the end follows what comes. */
const NEAR_PX = 24;
const NOTE_MS = 1500;

export class ChatView {
  readonly element: HTMLElement;
  private readonly model = el('span', 'gk-device');
  private readonly light = el('span', 'gk-light', 'Waiting');
  private readonly log = el('div', 'gk-log');
  private readonly spoken = el('div', 'gk-spoken');
  private readonly figures = el('div', 'gk-chat-figures');
  private readonly status = el('div', 'gk-chat-status');
  private readonly system = el('textarea', 'gk-input');
  private readonly input = el('textarea', 'gk-input');
  private readonly send = el('button', 'gk-button gk-send', 'Send');
  private readonly stop = el('button', 'gk-button gk-stop', 'Stop');
  private readonly rows = new Map<number, Row>();
  private readonly coming: FromKernel[] = [];
  private frame = 0;
  private readonly ending: () => void;
  private readonly actions: RowActions;

  constructor(
    host: HTMLElement,
    private readonly tell: (message: ToKernel) => void,
  ) {
    this.actions = {
      edit: (number, text) => tell({ type: 'edit', number, text }),
      again: (number) => tell({ type: 'again', number }),
      choose: (number) => tell({ type: 'choose', number }),
      read: (text) => setText(this.spoken, text),
      copy: (code, button) => void copy(code).then((done) => this.note(button, done ? 'Copied' : 'Not allowed')),
      insert: (code, language, button) => {
        if (insertCell(this.element, code, language)) this.note(button, 'Inserted');
        else void copy(code).then((done) => this.note(button, done ? 'Copied instead' : 'No notebook here'));
      },
    };
    this.log.setAttribute('role', 'log');
    this.log.setAttribute('aria-live', 'off'); // sentences are read out below, not tokens
    this.log.setAttribute('aria-label', 'Conversation');
    this.log.tabIndex = 0;
    this.spoken.setAttribute('aria-live', 'polite');
    this.status.setAttribute('role', 'status');
    this.field(this.input, 'Message', 'Ask something. Enter sends, Shift+Enter begins a line.', () => this.ask());
    this.field(this.system, 'System prompt', "The model's own", () => this.system.blur());
    this.system.addEventListener('change', () => tell({ type: 'system', text: this.system.value }));
    this.send.addEventListener('click', () => this.ask());
    this.stop.addEventListener('click', () => tell({ type: 'stop' }));
    const clear = el('button', 'gk-button', 'New conversation');
    clear.addEventListener('click', () => tell({ type: 'clear' }));
    const settings = el('details', 'gk-system', el('summary', '', 'System prompt'), this.system, clear);
    this.element = el(
      'section',
      'gk-panel gk-chat',
      el('header', 'gk-head', el('span', 'gk-title', 'Chat'), this.model, this.light),
      settings,
      this.log,
      this.figures,
      this.status,
      el('div', 'gk-ask', this.input, this.send, this.stop),
      this.spoken,
    );
    this.element.setAttribute('aria-label', 'Chat with a model');
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !this.stop.hidden) tell({ type: 'stop' });
      event.stopPropagation(); // what is typed here is no command of the lab
    });
    this.stop.hidden = true;
    host.append(this.element);
    readTheme(this.element);
    this.ending = watchTheme(() => readTheme(this.element));
  }

  /** What comes between two frames of the page is shown together: one layout for all of it. */
  receive(message: FromKernel): void {
    this.coming.push(message);
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.showAll();
    });
  }

  private showAll(): void {
    const follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR_PX;
    for (const message of this.coming.splice(0)) this.show(message);
    if (follows) this.log.scrollTop = this.log.scrollHeight;
  }

  private show(message: FromKernel): void {
    if (message.type === 'state') this.showState(message);
    else if (message.type === 'tokens') {
      const row = this.rows.get(message.number);
      // After a state some of these may be here already; where some are missing the state is asked for again.
      if (!row || message.at > row.count) return this.tell({ type: 'view' });
      row.push(message.rows.slice(row.count - message.at));
      this.showFigures(message.figures);
    } else if (message.type === 'ended') {
      this.rows.get(message.number)?.end(message);
      this.showFigures(message.figures);
      this.showBusy(false);
    } else setText(this.status, message.text);
  }

  dispose(): void {
    this.ending();
    cancelAnimationFrame(this.frame);
    this.element.remove();
  }

  private showState(state: Extract<FromKernel, { type: 'state' }>): void {
    setText(this.model, state.model);
    if (document.activeElement !== this.system) this.system.value = state.system;
    setText(this.status, '');
    this.rows.clear();
    this.log.replaceChildren();
    for (const message of state.messages) {
      const row = new Row(message, this.actions);
      this.rows.set(message.number, row);
      this.log.append(row.element);
    }
    const last = state.messages.at(-1);
    this.showFigures(last?.role === 'assistant' ? last.figures : null);
    this.showBusy(state.busy);
  }

  private showBusy(busy: boolean): void {
    setData(this.element, { state: busy ? 'answering' : 'ready' });
    setText(this.light, busy ? 'Answering' : 'Ready');
    this.stop.hidden = !busy;
    this.send.hidden = busy;
  }

  private showFigures(figures: Figures | null): void {
    if (!figures) return setText(this.figures, '');
    const parts = [
      figures.rate === null ? '' : `${figures.rate.toFixed(1)} tokens/s`,
      figures.first === null ? '' : `first token ${figures.first.toFixed(2)} s`,
      `context ${format.count(figures.used)} of ${format.count(figures.context)}`,
      `KV ${format.bytes(figures.bytes)}`,
    ];
    setText(this.figures, parts.filter(Boolean).join(' \u00b7 '));
  }

  private ask(): void {
    const text = this.input.value;
    if (text.trim() === '' || !this.stop.hidden) return;
    this.tell({ type: 'ask', text });
    this.input.value = '';
  }

  private field(field: HTMLTextAreaElement, name: string, hint: string, enter: () => void): void {
    field.rows = 2;
    field.placeholder = hint;
    field.setAttribute('aria-label', name);
    field.dataset['lmSuppressShortcuts'] = 'true';
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      enter();
    });
  }

  private note(button: HTMLElement, text: string): void {
    const before = button.textContent ?? '';
    setText(button, text);
    setText(this.status, text);
    setTimeout(() => setText(button, before), NOTE_MS);
  }
}
