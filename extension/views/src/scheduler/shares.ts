// Promised share against achieved share: the last minute of each tenant as a line over its promise, and a table.

import { Phase, type Store, format } from '@pygpukit/core';
import { Colours } from '../colours.js';
import { el, setLabel, setText, syncRows } from '../dom.js';
import { Pane } from '../pane.js';
import { Table } from '../table.js';
import { type Theme } from '../theme.js';

/** Lines that can be told apart; the table has every tenant. */
const MAX_LINES = 6;
const HEIGHT = 96;
const RECENT_S = 10;
/** The picture shows at least so much, and at most what is known. */
const MIN_SHOWN_S = 10;
const PPM = 1e6;

export interface Tenant {
  readonly name: string;
  /** 0 to 1; what its running tasks, or a context of that name, were promised together. */
  readonly promised: number;
  readonly achieved: number;
}

/** Who was busy in the last minute, is about to run or runs, or is a context. */
export function tenantsOf(store: Store): Tenant[] {
  const { shares, tasks, contexts } = store;
  const promised = new Map<string, number>();
  for (const name of shares.tenants) promised.set(name, 0);
  for (const task of tasks.all) {
    if (task.phase !== Phase.Running && task.phase !== Phase.Admitted) continue;
    const name = store.taskName(task);
    promised.set(name, (promised.get(name) ?? 0) + (task.facts?.sharePpm ?? 0) / PPM);
  }
  for (const { name, sharePpm } of contexts) promised.set(name, (promised.get(name) ?? 0) + sharePpm / PPM);
  return [...promised].map(([name, share]) => ({ name, promised: share, achieved: shares.recent(name, RECENT_S) }));
}

/** Those with most, in the order in which they were given. */
export function largest(tenants: readonly Tenant[], count: number): Tenant[] {
  const most = new Set([...tenants].sort((one, other) => other.promised + other.achieved - one.promised - one.achieved).slice(0, count));
  return tenants.filter((tenant) => most.has(tenant));
}

const SOURCES = {
  device: 'achieved: measured device time',
  host: 'achieved: time in operations that ran on the host',
  '': 'nothing measured yet',
} as const;

export class ShareChart {
  readonly element: HTMLElement;
  readonly aside = el('span');
  private readonly pane: Pane;
  private readonly legend = el('ul', 'gk-legend gk-legend-wide');
  private readonly table: Table;
  private readonly colours: Colours;

  constructor(
    private readonly store: Store,
    colours: number,
    redraw: () => void,
  ) {
    this.colours = new Colours(colours);
    this.pane = new Pane('Share of the device by tenant over the last minute, dashed what was promised', HEIGHT, redraw);
    this.table = new Table('Shares as a table', ['Tenant', 'Promised', `Achieved, last ${RECENT_S} s`], redraw);
    this.element = el('div', '', this.pane.canvas, this.legend, this.table.element);
  }

  draw(theme: Theme): void {
    const { shares } = this.store;
    const tenants = tenantsOf(this.store);
    const lines = largest(tenants, MAX_LINES);
    this.colours.keep(new Set(lines.map(({ name }) => name)));
    setText(this.aside, SOURCES[shares.source]);
    const promise = ({ promised }: Tenant): string => (promised > 0 ? format.percent(promised, 1) : 'none');
    const achieved = (tenant: Tenant): string => format.percent(tenant.achieved, 1);
    const rows = lines.map((tenant) => ({ name: tenant.name, colour: `var(--gk-owner-${this.colours.of(tenant.name)})`, amount: `${achieved(tenant)}, promised ${promise(tenant)}` }));
    if (tenants.length > lines.length) rows.push({ name: `${tenants.length - lines.length} more`, colour: 'var(--gk-muted)', amount: 'in the table' });
    const make = (): HTMLLIElement => el('li', '', el('i', 'gk-swatch'), el('span', 'gk-label'), el('span', 'gk-amount'));
    syncRows(this.legend, rows, make, (item, { name, colour, amount }) => {
      const [mark, label, words] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      mark.style.background = colour;
      setLabel(label, name);
      setText(words, amount);
    });
    this.table.show(
      () => tenants,
      (tenant) => [tenant.name, promise(tenant), achieved(tenant)],
    );
    this.pane.draw((context, width, height) => this.paint(context, width, height, theme, lines));
  }

  dispose(): void {
    this.pane.dispose();
  }

  private paint(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme, tenants: readonly Tenant[]): void {
    const { shares } = this.store;
    const [top, floor] = [12, height - 16];
    const y = (share: number): number => floor - Math.min(1, share) * (floor - top);
    context.font = `10px ${theme.font}`;
    context.lineWidth = 1;
    for (const [part, text] of [[0, '0'], [0.5, '50 %'], [1, '100 %']] as const) {
      context.strokeStyle = theme.grid;
      context.beginPath();
      context.moveTo(0, Math.round(y(part)) + 0.5);
      context.lineTo(width, Math.round(y(part)) + 0.5);
      context.stroke();
      context.fillStyle = theme.muted;
      context.textBaseline = 'bottom';
      context.textAlign = 'left';
      if (part > 0) context.fillText(text, 2, y(part));
    }
    context.textBaseline = 'bottom';
    const seconds = Math.max(MIN_SHOWN_S, shares.seconds);
    for (const [text, x, align] of [[`${seconds} s ago`, 0, 'left'], ['now', width, 'right']] as const) {
      context.textAlign = align;
      context.fillText(text, x, height);
    }
    for (const { name, promised } of tenants) {
      context.strokeStyle = theme.owners[this.colours.of(name)] ?? theme.text;
      context.lineWidth = 1.5;
      context.beginPath();
      // The second under way is not full yet.
      for (let age = seconds; age >= 1; age--) {
        const [left, right, at] = [1 - age / seconds, 1 - (age - 1) / seconds, y(shares.share(name, age))];
        context.lineTo(left * width, at);
        context.lineTo(right * width, at);
      }
      context.stroke();
      if (promised === 0) continue;
      context.setLineDash([4, 4]);
      context.beginPath();
      context.moveTo(0, y(promised));
      context.lineTo(width, y(promised));
      context.stroke();
      context.setLineDash([]);
    }
  }
}
