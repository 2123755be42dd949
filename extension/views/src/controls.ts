// Buttons that ask the kernel for something: drawn only where the kernel has the operation, and honest while they wait.

import { type Channel, QUEUED_AFTER_MS } from '@pygpukit/core';
import { el, setData, setText } from './dom.js';

export type Arguments = () => Readonly<Record<string, unknown>> | null;

/** A row of controls with one line that says what became of the last press. */
export class Controls {
  readonly element = el('div', 'gk-controls');
  private readonly buttons = new Map<string, HTMLElement>();
  private readonly status = el('span', 'gk-control-status');
  private available: readonly string[] = [];
  private asked = 0;

  constructor(
    private readonly channel: Channel,
    label: string,
    private readonly onAnswer: (action: string, result: Readonly<Record<string, unknown>>) => void = () => undefined,
  ) {
    this.element.setAttribute('role', 'group');
    this.element.setAttribute('aria-label', label);
    this.status.setAttribute('role', 'status');
    this.element.append(this.status);
    this.element.hidden = true;
    channel.request('controls').then(
      ({ actions }) => {
        this.available = Array.isArray(actions) ? actions.filter((name) => typeof name === 'string') : [];
        this.showAvailable();
      },
      () => undefined, // a source without controls, a replay for one: none is drawn
    );
  }

  /** A button of an action; `args` returns null while there is nothing to act on, and the button is disabled. */
  button(action: string, text: string, args: Arguments = () => ({})): HTMLButtonElement {
    const button = el('button', 'gk-button', text);
    button.type = 'button';
    button.addEventListener('click', () => {
      const values = args();
      if (values) void this.act(action, text, values);
    });
    this.place(action, button);
    return button;
  }

  /**
   * A button of an action with a text field before it, which Enter sends too, and before that whatever says what it acts on.
   * Returns how to disable both while there is nothing to act on; `args` returns null then.
   */
  field(action: string, text: string, placeholder: string, args: (value: string) => Readonly<Record<string, unknown>> | null, ...before: HTMLElement[]): (enabled: boolean) => void {
    const input = el('input', 'gk-input');
    input.placeholder = placeholder;
    input.setAttribute('aria-label', `${text}: ${placeholder}`);
    const button = el('button', 'gk-button', text);
    button.type = 'submit';
    const form = el('form', 'gk-field', ...before, input, button);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const value = input.value.trim();
      const values = value ? args(value) : null;
      if (values) void this.act(action, text, values);
    });
    // Keys typed here belong to the field, not to the lab's shortcuts.
    form.dataset['lmSuppressShortcuts'] = 'true';
    form.addEventListener('keydown', (event) => event.stopPropagation());
    this.place(action, form);
    return (enabled) => {
      input.disabled = button.disabled = !enabled;
    };
  }

  has(action: string): boolean {
    return this.available.includes(action);
  }

  /** As a press of a button that stands elsewhere. */
  press(action: string, text: string, args: Readonly<Record<string, unknown>>): void {
    void this.act(action, text, args);
  }

  private place(action: string, element: HTMLElement): void {
    element.hidden = true;
    element.dataset['action'] = action;
    this.buttons.set(action, element);
    this.element.insertBefore(element, this.status);
    this.showAvailable();
  }

  private showAvailable(): void {
    for (const [action, element] of this.buttons) element.hidden = !this.has(action);
    this.element.hidden = ![...this.buttons.keys()].some((action) => this.has(action));
  }

  private async act(action: string, text: string, args: Readonly<Record<string, unknown>>): Promise<void> {
    const number = ++this.asked;
    const show = (state: 'sent' | 'queued' | 'done' | 'refused', words: string): void => {
      if (number !== this.asked) return;
      setData(this.status, { state, action });
      setText(this.status, words);
    };
    show('sent', `${text} ...`);
    const timer = setTimeout(() => show('queued', `${text}: queued until the running cell ends`), QUEUED_AFTER_MS);
    try {
      const result = await this.channel.request(action, args);
      const { note } = result;
      show('done', typeof note === 'string' ? note : `${text}: done`);
      this.onAnswer(action, result);
    } catch (error) {
      show('refused', `${text}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }
}
