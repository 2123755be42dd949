// A chat: the log, the line of figures, the field to ask in. The kernel holds the conversation; this shows it and asks.

import { format } from '@pygpukit/core';
import { el, setData, setText } from '../dom.js';
import { followTheme } from '../theme.js';
import { copy, insertCell } from './insert.js';
import { keepKeys } from './keys.js';
import { typeset } from './math.js';
import type { Figures, FromKernel, State, ToKernel } from './messages.js';
import { Row, type RowActions } from './row.js';
import { SettingsForm } from './settings.js';

/** Who is as near to the end follows what comes. */
const NEAR_PX = 24;
const NOTE_MS = 1500;
/** A kernel that has not taken a question by then is busy, or gone. */
const LATE_MS = 10_000;
const LATE = 'The kernel has not taken the question yet: it is busy, or gone. The text stays here.';
const GONE = 'The kernel of this chat has ended. The text stays here; run the cells again to go on.';

/** What is kept of a chat while it has no view: what was being typed. */
export interface Draft {
  text: string;
}

export class ChatView {
  readonly element: HTMLElement;
  private readonly model = el('span', 'gk-device');
  private readonly light = el('span', 'gk-light', 'Waiting');
  private readonly log = el('div', 'gk-log');
  private readonly spoken = el('div', 'gk-spoken');
  private readonly figures = el('div', 'gk-chat-figures');
  private readonly status = el('div', 'gk-chat-status');
  private readonly input = el('textarea', 'gk-input');
  private readonly send = el('button', 'gk-button gk-send', 'Send');
  private readonly stop = el('button', 'gk-button gk-stop', 'Stop');
  private readonly chats = el('select', 'gk-chats');
  private readonly settings: SettingsForm;
  private readonly rows = new Map<number, Row>();
  private readonly coming: FromKernel[] = [];
  private frame = 0;
  /** What was asked and not taken yet; '' for nothing. */
  private asked = '';
  private late = 0;
  private gone = false;
  private readonly endings: (() => void)[] = [];
  private readonly actions: RowActions;

  constructor(
    host: HTMLElement,
    private readonly tell: (message: ToKernel) => void,
    private readonly draft: Draft = { text: '' },
  ) {
    this.actions = {
      edit: (number, text) => tell({ type: 'edit', number, text }),
      again: (number) => tell({ type: 'again', number }),
      choose: (number) => tell({ type: 'choose', number }),
      delete: (number) => tell({ type: 'delete', number }),
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
    const system = el('textarea', 'gk-input');
    this.field(this.input, 'Message', 'Ask something. Enter sends, Shift+Enter begins a line.', () => this.ask());
    this.field(system, 'System prompt', "The model's own", () => system.blur());
    this.input.value = draft.text;
    this.input.addEventListener('input', () => (draft.text = this.input.value));
    this.send.addEventListener('click', () => this.ask());
    this.stop.addEventListener('click', () => tell({ type: 'stop' }));
    this.settings = new SettingsForm(system, tell);
    const another = el('button', 'gk-button', 'New chat');
    another.addEventListener('click', () => tell({ type: 'new' }));
    this.chats.setAttribute('aria-label', 'Chats');
    this.chats.hidden = true;
    this.chats.addEventListener('change', () => tell({ type: 'go', number: this.chats.selectedIndex }));
    this.element = el(
      'section',
      'gk-panel gk-chat',
      el('header', 'gk-head', el('span', 'gk-title', 'Chat'), this.model, this.chats, another, this.light),
      this.settings.element,
      this.log,
      this.figures,
      this.status,
      el('div', 'gk-ask', this.input, this.send, this.stop),
      this.spoken,
    );
    this.element.setAttribute('aria-label', 'Chat with a model');
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !this.stop.hidden) tell({ type: 'stop' });
    });
    keepKeys(this.element);
    this.stop.hidden = true;
    host.append(this.element);
    // The lab extension marks the view of a kernel that has ended: no message comes of it.
    const ended = new MutationObserver(() => this.showGone());
    ended.observe(this.element, { attributeFilter: ['data-gk-ended'] });
    this.endings.push(
      followTheme(this.element, () => undefined),
      () => ended.disconnect(),
      () => clearTimeout(this.late),
      () => cancelAnimationFrame(this.frame),
    );
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
    else if (message.type === 'stage') this.rows.get(message.number)?.tell(message);
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
    } else this.showRefused(message.text, message.question);
  }

  dispose(): void {
    for (const end of this.endings) end();
    this.element.remove();
  }

  private showState(state: State): void {
    setText(this.model, state.model);
    this.settings.show(state);
    this.chats.replaceChildren(...state.chats.map((name, at) => el('option', '', `${at + 1}. ${name}`)));
    this.chats.selectedIndex = state.chat;
    this.chats.hidden = state.chats.length < 2;
    setText(this.status, '');
    this.rows.clear();
    this.log.replaceChildren();
    for (const message of state.messages) {
      const row = new Row(message, this.actions);
      this.rows.set(message.number, row);
      this.log.append(row.element);
    }
    typeset(this.log);
    const asked = state.messages.findLast(({ role }) => role === 'user');
    if (this.asked !== '' && asked?.role === 'user' && asked.text === this.asked) this.taken();
    const last = state.messages.at(-1);
    this.showFigures(last?.role === 'assistant' ? last.figures : null);
    this.showBusy(state.busy);
  }

  private showBusy(busy: boolean): void {
    setData(this.element, { state: this.gone ? 'ended' : busy ? 'answering' : 'ready' });
    setText(this.light, this.gone ? 'Ended' : busy ? 'Answering' : 'Ready');
    this.stop.hidden = !busy || this.gone;
    this.send.hidden = busy && !this.gone;
    this.send.disabled = this.gone;
  }

  private showGone(): void {
    this.gone = 'gkEnded' in this.element.dataset;
    if (!this.gone) return;
    clearTimeout(this.late);
    if (this.asked !== '') this.write(this.asked);
    this.asked = '';
    setText(this.status, GONE);
    this.showBusy(false);
  }

  /** The question is back in the field, where nothing else was begun meanwhile. */
  private showRefused(text: string, question: string): void {
    clearTimeout(this.late);
    this.asked = '';
    if (question !== '' && this.input.value.trim() === '') this.write(question);
    setText(this.status, text);
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

  /** The text leaves the field when the kernel has taken it: one that is gone takes nothing. */
  private ask(): void {
    const text = this.input.value;
    if (text.trim() === '' || !this.stop.hidden) return;
    if (this.gone) return setText(this.status, GONE);
    this.asked = text;
    this.tell({ type: 'ask', text });
    clearTimeout(this.late);
    this.late = window.setTimeout(() => setText(this.status, LATE), LATE_MS);
  }

  private taken(): void {
    clearTimeout(this.late);
    if (this.input.value === this.asked) this.write('');
    this.asked = '';
  }

  private write(text: string): void {
    this.input.value = this.draft.text = text;
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
