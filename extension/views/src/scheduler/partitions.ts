// What a share is set of: the chosen task, or one of the partitions, as far as there are any.

import { type Partition } from '@pygpukit/core';
import { el } from '../dom.js';

export class PartitionChoice {
  readonly element = el('select', 'gk-input');
  private shown = '';
  private ids: readonly string[] = [];

  constructor() {
    this.element.setAttribute('aria-label', 'Share of');
    this.show([]);
  }

  /** The partition that is chosen; "" where it is the task. */
  get partition(): string {
    return this.ids[this.element.selectedIndex - 1] ?? '';
  }

  show(partitions: readonly Partition[]): void {
    const ids = partitions.map(({ id }) => id);
    const key = JSON.stringify(ids);
    if (key === this.shown) return;
    this.shown = key;
    const before = this.partition;
    this.ids = ids;
    this.element.replaceChildren(el('option', '', 'chosen task'), ...ids.map((id) => el('option', '', `partition ${id}`)));
    this.element.selectedIndex = ids.indexOf(before) + 1;
    this.element.hidden = ids.length === 0;
  }
}
