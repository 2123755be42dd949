// Which scheduler's tasks are shown: a choice that is there once there are several schedulers.

import { type Store, type Task } from '@pygpukit/core';
import { el } from '../dom.js';

const ALL = 'all schedulers';

export class SchedulerChoice {
  private readonly select = el('select', 'gk-input');
  readonly element = el('label', 'gk-choice', 'of ', this.select);
  private labels: readonly string[] = [];
  private key = '';
  private shown: readonly Task[] = [];

  constructor(
    private readonly store: Store,
    redraw: () => void,
  ) {
    this.select.setAttribute('aria-label', 'Tasks of');
    this.select.addEventListener('change', redraw);
    this.element.hidden = true;
  }

  /** The tasks of the chosen scheduler, or all; the same array until a task comes, goes or changes. */
  tasks(): readonly Task[] {
    const { tasks } = this.store;
    const key = `${tasks.version} ${this.select.selectedIndex}`;
    if (key === this.key) return this.shown;
    this.offer(tasks.all);
    this.key = `${tasks.version} ${this.select.selectedIndex}`;
    const chosen = this.labels[this.select.selectedIndex - 1];
    this.shown = chosen === undefined ? tasks.all : tasks.all.filter(({ facts }) => facts?.scheduler === chosen);
    return this.shown;
  }

  private offer(tasks: readonly Task[]): void {
    const labels = [...new Set(tasks.map(({ facts }) => facts?.scheduler ?? ''))].filter((label) => label !== '');
    if (labels.join('\n') === this.labels.join('\n')) return;
    const chosen = this.labels[this.select.selectedIndex - 1];
    this.labels = labels;
    this.select.replaceChildren(...[ALL, ...labels].map((label) => el('option', '', label)));
    this.select.selectedIndex = chosen === undefined ? 0 : labels.indexOf(chosen) + 1;
    this.element.hidden = labels.length < 2;
  }
}
