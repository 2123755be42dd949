// One message in the log: what was said, and what can be done with it.

import { el, setText } from '../dom.js';
import { AnswerText, type CodeActions } from './answer.js';
import type { End, MessageRow, Stage, TokenRow } from './messages.js';
import { Tokens } from './tokens.js';

export interface RowActions extends CodeActions {
  edit(number: number, text: string): void;
  again(number: number): void;
  choose(number: number): void;
  delete(number: number): void;
  /** A part of an answer is whole: for screen readers. */
  read(text: string): void;
}

export class Row {
  readonly element = el('article', 'gk-said');
  private readonly tools = el('div', 'gk-tools');
  private readonly body = el('div', 'gk-said-body');
  private readonly note = el('p', 'gk-note');
  private readonly stage = el('p', 'gk-stage');
  private readonly before = el('p', 'gk-note gk-left-out');
  private readonly source: string[] = [];
  private readonly text: AnswerText;
  private readonly thinking = el('div', 'gk-thought');
  private readonly thoughts = el('details', 'gk-thinking', el('summary', '', 'Thinking'), this.thinking);
  private readonly tokens = new Tokens();
  private live = false;
  /** Tokens that are here already. */
  count = 0;

  constructor(
    private readonly message: MessageRow,
    private readonly actions: RowActions,
  ) {
    const mine = message.role === 'user';
    this.text = new AnswerText(actions, (text) => this.live && actions.read(text));
    this.element.dataset['role'] = message.role;
    this.element.dataset['number'] = String(message.number);
    this.element.setAttribute('aria-label', mine ? 'You' : 'Model');
    this.element.append(el('div', 'gk-said-head', el('strong', '', mine ? 'You' : 'Model'), this.branches(), this.tools), this.body);
    if (message.role === 'user') {
      this.body.append(el('div', 'gk-question', message.text));
      this.tools.append(
        this.button('Edit', () => this.startEdit(message.text)),
        this.button('Delete', () => actions.delete(message.number)),
      );
    } else {
      this.thoughts.hidden = true;
      this.tokens.element.hidden = true;
      this.stage.setAttribute('role', 'status');
      this.body.append(this.before, this.stage, this.thoughts, this.text.element, this.tokens.element, this.note);
      const copy = this.button('Copy', () => actions.copy(this.source.join('').trim(), copy));
      this.tools.append(copy, this.button('Again', () => actions.again(message.number)), this.tokensButton());
      copy.setAttribute('aria-label', 'Copy the answer');
      this.tell(message);
      this.push(message.rows);
      if (message.reason !== null) this.end(message);
      this.live = message.reason === null;
    }
  }

  /** What is done until the first token, and what is to be known of the answer. */
  tell({ stage, note }: Stage): void {
    setText(this.stage, this.count === 0 ? stage : '');
    this.stage.hidden = this.stage.textContent === '';
    setText(this.before, note);
    this.before.hidden = note === '';
  }

  push(rows: readonly TokenRow[]): void {
    this.count += rows.length;
    if (this.count > 0) this.stage.hidden = true;
    for (const row of rows) this.source.push(row[1]);
    this.tokens.push(rows);
    const thought = rows.map((row) => row[2]).join('');
    if (thought !== '') {
      this.thoughts.hidden = false;
      this.thinking.append(thought);
    }
    this.text.push(rows.map((row) => row[1]).join(''));
  }

  end({ ended, error }: End): void {
    this.text.finish();
    this.live = false;
    this.stage.hidden = true;
    setText(this.note, error || ended);
    this.note.classList.toggle('gk-failed', error !== '');
  }

  private button(label: string, press: () => void): HTMLButtonElement {
    const control = el('button', 'gk-button', label);
    control.type = 'button';
    control.addEventListener('click', press);
    return control;
  }

  private tokensButton(): HTMLButtonElement {
    const control = this.button('Tokens', () => {
      const show = this.tokens.element.hidden;
      this.tokens.element.hidden = !show;
      this.text.element.hidden = show;
      control.setAttribute('aria-pressed', String(show));
    });
    control.setAttribute('aria-pressed', 'false');
    return control;
  }

  private branches(): HTMLElement {
    const { places, number } = this.message;
    const at = places.indexOf(number);
    const whole = el('span', 'gk-branches');
    if (places.length < 2) return whole;
    const to = (label: string, place: number): HTMLButtonElement => {
      const control = this.button(place < at ? '\u2039' : '\u203a', () => this.actions.choose(places[place] ?? number));
      control.setAttribute('aria-label', label);
      control.disabled = places[place] === undefined;
      return control;
    };
    whole.append(to('Version before', at - 1), `${at + 1}/${places.length}`, to('Next version', at + 1));
    return whole;
  }

  private startEdit(text: string): void {
    const field = el('textarea', 'gk-input');
    field.value = text;
    field.rows = Math.min(8, text.split('\n').length + 1);
    field.setAttribute('aria-label', 'Edit the question');
    field.dataset['lmSuppressShortcuts'] = 'true';
    const before = [...this.body.childNodes];
    const leave = (): void => this.body.replaceChildren(...before);
    const send = (): void => this.actions.edit(this.message.number, field.value);
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') leave();
      else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    this.body.replaceChildren(field, el('div', 'gk-tools', this.button('Ask this', send), this.button('Leave it', leave)));
    field.focus();
  }
}
