// The per-cell ledger: what each executed cell cost, as bars, as a table, and as a badge on the cell itself.

import { type CellFigures, type Channel, type Store, format } from '@pygpukit/core';
import { el, setData, setText, syncRows } from '../dom.js';
import { section } from '../figures.js';
import { Panel } from '../panel.js';
import { findCell, revealCell } from '../reveal.js';
import { Table } from '../table.js';

const BARS = 12;
const BADGE = 'gk-badge';

export class CellsView extends Panel {
  private readonly bars = el('ul', 'gk-cell-bars');
  private readonly note = el('p', 'gk-chosen');
  private readonly table: Table;
  private badges: HTMLElement[] = [];
  private shown: readonly CellFigures[] = [];

  constructor(host: HTMLElement, store: Store, _channel: Channel) {
    super(host, store, 'GPU cells');
    const heads = ['Cell', 'GPU time', 'Launches', 'Peak', 'Kept', 'Held, unnamed', 'Wall'];
    this.table = new Table('Cells as a table', heads, this.schedule, true);
    this.body.append(section('GPU time by cell', '', this.bars, this.note), this.table.element);
    this.onDispose(() => this.badges.forEach((badge) => badge.remove()));
  }

  protected override hasData(): boolean {
    return this.store.cells.length > 0 || super.hasData();
  }

  protected override draw(): void {
    const { cells } = this.store;
    setData(this.element, { cells: cells.length });
    const untimed = cells.reduce((sum, cell) => sum + (cell.running ? 0 : cell.untimed), 0);
    const missing = `GPU time holds what was timed: ${format.count(untimed)} kernel launches have no event times and are missing in it.`;
    setText(this.note, cells.length === 0 ? 'No cell has run since the extension was loaded.' : untimed > 0 ? missing : '');
    this.drawBars(cells);
    this.table.show(
      () => [...cells].reverse(),
      (cell) => [
        `In [${cell.count}]`,
        gpuText(cell),
        format.count(cell.launches),
        (cell.complete ? '' : 'at least ') + format.bytes(cell.peak),
        format.bytes(cell.kept),
        format.bytes(cell.leaked),
        format.duration(cell.wallNs),
      ],
      ({ cell }) => void revealCell(this.element, cell),
    );
    if (cells !== this.shown) this.drawBadges(cells);
    this.shown = cells;
  }

  private drawBars(cells: readonly CellFigures[]): void {
    const shown = cells.filter(({ launches }) => launches > 0).slice(-BARS);
    const longest = Math.max(1, ...shown.map(({ gpuNs }) => gpuNs));
    const make = (): HTMLLIElement => el('li', '', el('span', 'gk-label'), el('span', 'gk-bar', el('i', 'gk-bar-used')), el('span', 'gk-amount'));
    syncRows(this.bars, shown, make, (item, cell) => {
      const [label, bar, amount] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      setText(label, `In [${cell.count}]`);
      (bar.firstElementChild as HTMLElement).style.width = `${(100 * cell.gpuNs) / longest}%`;
      setText(amount, gpuText(cell));
    });
  }

  /** A badge in the corner of each cell that is in the page, of its last run. */
  private drawBadges(cells: readonly CellFigures[]): void {
    for (const badge of this.badges.splice(0)) badge.remove();
    for (const [id, figures] of new Map(cells.map((one) => [one.cell, one]))) {
      const area = findCell(this.element, id)?.querySelector<HTMLElement>('.jp-Cell-inputWrapper, .jp-InputArea');
      if (!area) continue;
      area.querySelector(`.${BADGE}`)?.remove(); // of another view, which may be of an earlier run
      const badge = el('span', BADGE, badgeText(figures));
      area.style.position ||= 'relative';
      area.append(badge);
      this.badges.push(badge);
    }
  }
}

/** "3.2 ms", or what is missing of it. */
export function gpuText({ gpuNs, launches, untimed, running }: CellFigures): string {
  if (running && launches > 0) return 'still running';
  if (launches === 0 && gpuNs === 0) return '\u2013';
  if (untimed === 0) return format.duration(gpuNs);
  return untimed === launches ? 'not timed' : `${format.duration(gpuNs)} + ${format.count(untimed)} not timed`;
}

export function badgeText(cell: CellFigures): string {
  const parts = [`GPU ${gpuText(cell)}`, `${format.count(cell.launches)} ${cell.launches === 1 ? 'launch' : 'launches'}`, `peak ${format.bytes(cell.peak)}`];
  if (cell.leaked > 0) parts.push(`${format.bytes(cell.leaked)} held, unnamed`);
  return parts.join(' \u00b7 ');
}
