// The links between devices: a row a device that copies, a column a device that is copied to.

import { type Channel, type Link, type Store, format } from '@pygpukit/core';
import { el, setData, setLabel, setText, syncRows } from '../dom.js';
import { section } from '../figures.js';
import { Panel } from '../panel.js';
import { Table } from '../table.js';

export class LinksView extends Panel {
  private readonly head = el('tr');
  private readonly rows = el('tbody');
  private readonly note = el('p', 'gk-chosen');
  private readonly table: Table;

  constructor(host: HTMLElement, store: Store, _channel: Channel) {
    super(host, store, 'GPU links');
    const matrix = el('table', 'gk-table gk-links', el('caption', 'gk-note', 'bytes a second now, over those of the wire'), el('thead', '', this.head), this.rows);
    const scroll = el('div', 'gk-scroll', matrix);
    scroll.tabIndex = 0;
    scroll.setAttribute('role', 'region');
    scroll.setAttribute('aria-label', 'Links between devices');
    this.table = new Table('Links as a table', ['From', 'To', 'Kind', 'Wire', 'Now', 'Moved straight', 'Moved by way of the host'], this.schedule);
    this.body.append(section('From device to device', '', scroll, this.note), this.table.element);
  }

  protected override hasData(): boolean {
    return this.store.links.rows.length > 0 || super.hasData();
  }

  protected override draw(): void {
    const { rows } = this.store.links;
    const places = [...new Set(rows.flatMap(({ from, to }) => [from, to]))].sort((x, y) => x - y);
    setData(this.element, { links: rows.length });
    setText(this.note, rows.length === 0 ? 'There is one device, and no link.' : '');
    syncRows(this.head, ['', ...places.map((place) => `to ${place}`)], () => headOf('col'), setText);
    const make = (): HTMLTableRowElement => el('tr', '', headOf('row'));
    syncRows(this.rows, places, make, (row, from) => {
      setText(row.children[0] as HTMLElement, `from ${from}`);
      while (row.childElementCount > places.length + 1) row.lastElementChild?.remove();
      while (row.childElementCount < places.length + 1) row.append(el('td'));
      places.forEach((to, i) => this.fill(row.children[i + 1] as HTMLElement, from, to));
    });
    this.table.show(
      () => rows,
      (link) => [
        String(link.from),
        String(link.to),
        kindText(link),
        link.bytesPerS > 0 ? rateText(link.bytesPerS) : 'not told',
        rateText(this.store.links.rate(link)),
        format.bytes(link.directBytes),
        format.bytes(link.hostBytes),
      ],
    );
  }

  private fill(cell: HTMLElement, from: number, to: number): void {
    const link = this.store.links.rows.find((row) => row.from === from && row.to === to);
    const rate = link ? this.store.links.rate(link) : 0;
    setData(cell, { link: `${from}>${to}`, rate: Math.round(rate) });
    setLabel(cell, link ? `${rateText(rate)}${link.bytesPerS > 0 ? ` of ${rateText(link.bytesPerS)}` : ''}, ${kindText(link)}` : '-');
    const part = link && link.bytesPerS > 0 ? Math.min(1, rate / link.bytesPerS) : 0;
    cell.style.background = part > 0 ? `color-mix(in srgb, var(--gk-used) ${Math.round(35 * part)}%, transparent)` : '';
  }
}

function headOf(scope: 'col' | 'row'): HTMLTableCellElement {
  const head = el('th');
  head.scope = scope;
  return head;
}

function kindText({ kind, lanes }: Link): string {
  if (kind === 'host') return 'by way of the host';
  return lanes > 0 ? `${lanes} ${kind}` : kind;
}

function rateText(bytesPerS: number): string {
  return `${format.bytes(bytesPerS)}/s`;
}
