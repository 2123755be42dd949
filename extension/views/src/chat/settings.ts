// Settings of a chat: system prompt, temperature, top-p, length. What is empty is the model's own.

import { el } from '../dom.js';
import type { Settings, State, ToKernel } from './messages.js';

const FIELDS = [
  ['temperature', 'Temperature', '0: always the most probable token', '0', '0.1'],
  ['top_p', 'Top-p', 'Only the most probable tokens that have this share together', '0', '0.05'],
  ['max_new_tokens', 'Tokens of an answer', 'At most', '1', '1'],
] as const satisfies readonly (readonly [keyof Settings, string, string, string, string])[];
const OWN: Readonly<Record<keyof Settings, string>> = { temperature: '0', top_p: '1', max_new_tokens: '256' };

export class SettingsForm {
  readonly element: HTMLElement;
  private readonly inputs = new Map<keyof Settings, HTMLInputElement>();

  constructor(
    private readonly system: HTMLTextAreaElement,
    tell: (message: ToKernel) => void,
  ) {
    system.addEventListener('change', () => tell({ type: 'system', text: system.value }));
    const row = el('div', 'gk-settings-row');
    for (const [key, label, hint, min, step] of FIELDS) {
      const input = el('input', 'gk-input');
      Object.assign(input, { type: 'number', min, step, placeholder: OWN[key], title: hint });
      input.dataset['lmSuppressShortcuts'] = 'true';
      input.addEventListener('change', () => tell({ type: 'settings', settings: this.values() }));
      this.inputs.set(key, input);
      row.append(el('label', '', label, input));
    }
    this.element = el('details', 'gk-system', el('summary', '', 'Settings'), el('label', '', 'System prompt', system), row);
  }

  show({ system, settings }: State): void {
    if (document.activeElement !== this.system) this.system.value = system;
    for (const [key, input] of this.inputs) if (document.activeElement !== input) input.value = settings[key] === null ? '' : String(settings[key]);
  }

  private values(): Settings {
    const value = (key: keyof Settings): number | null => {
      const text = this.inputs.get(key)?.value ?? '';
      return text === '' ? null : Number(text);
    };
    return { temperature: value('temperature'), top_p: value('top_p'), max_new_tokens: value('max_new_tokens') };
  }
}
