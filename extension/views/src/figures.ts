// A row of key figures: label above, value and unit apart, a quiet note below.

import { el, setText } from './dom.js';

export interface Figure {
  readonly value: string;
  readonly unit?: string;
  readonly note?: string;
}

export class Figures {
  readonly element = el('div', 'gk-figures');
  private readonly cells: { value: HTMLElement; unit: HTMLElement; note: HTMLElement }[] = [];

  constructor(labels: readonly string[]) {
    for (const label of labels) {
      const value = el('span', 'gk-value');
      const unit = el('span', 'gk-unit');
      const note = el('div', 'gk-note');
      this.element.append(el('div', 'gk-figure', el('div', 'gk-figure-label', label), el('div', '', value, unit), note));
      this.cells.push({ value, unit, note });
    }
  }

  show(figures: readonly Figure[]): void {
    this.cells.forEach((cell, i) => {
      const figure = figures[i];
      setText(cell.value, figure?.value ?? '');
      setText(cell.unit, figure?.unit ?? '');
      setText(cell.note, figure?.note ?? '');
    });
  }
}

/** A titled part of a panel; `aside` is set at the right of the title. */
export function section(title: string, aside: Node | string, ...content: Node[]): HTMLElement {
  const head = el('div', 'gk-section-head', el('span', 'gk-section-title', title), el('span', 'gk-section-aside', aside));
  return el('div', 'gk-section', head, ...content);
}
