// A picture's table: closed until somebody opens it, filled only while it is open, and no longer than can be kept up to date.

import { format } from '@pygpukit/core';
import { el, setLabel, setText, syncRows } from './dom.js';

const MAX_ROWS = 200;

export class Table {
  readonly element: HTMLDetailsElement;
  private readonly body = el('tbody');
  private readonly note = el('p', 'gk-note');

  constructor(
    summary: string,
    private readonly heads: readonly string[],
    onToggle: () => void,
    open = false,
  ) {
    const cells = heads.map((text) => el('th', '', text));
    cells.forEach((cell) => (cell.scope = 'col'));
    const table = el('table', 'gk-table', el('thead', '', el('tr', '', ...cells)), this.body);
    const scroll = el('div', 'gk-scroll', table, this.note);
    // A box that scrolls can be reached by the keyboard.
    scroll.tabIndex = 0;
    scroll.setAttribute('role', 'region');
    scroll.setAttribute('aria-label', summary);
    this.element = el('details', 'gk-details', el('summary', '', summary), scroll);
    this.element.open = open;
    this.element.addEventListener('toggle', onToggle);
  }

  /** Rows of texts, the first of them where they are many, which is said; `click` makes the rows buttons. */
  show<T>(rows: () => readonly T[], texts: (row: T) => readonly string[], click?: (row: T) => void): void {
    if (!this.element.open) return;
    const make = (): HTMLTableRowElement => el('tr', '', ...this.heads.map(() => el('td')));
    const all = rows();
    setText(this.note, all.length > MAX_ROWS ? `the first ${MAX_ROWS} of ${format.count(all.length)}` : '');
    this.note.hidden = all.length <= MAX_ROWS;
    syncRows(this.body, all.slice(0, MAX_ROWS), make, (element, row) => {
      texts(row).forEach((text, i) => setLabel(element.children[i] as HTMLElement, text));
      element.onclick = click ? () => click(row) : null;
      element.tabIndex = click ? 0 : -1;
      element.onkeydown = click ? (event) => event.key === 'Enter' && click(row) : null;
      element.classList.toggle('gk-link', click !== undefined);
    });
  }
}
