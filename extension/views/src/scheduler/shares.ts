// Promised share against achieved share: the last minute of each tenant as a line over its promise, and a table.

import { Phase, type Store, format } from '@pygpukit/core';
import { el, setText, syncRows } from '../dom.js';
import { Pane } from '../pane.js';
import { Table } from '../table.js';
import { type Theme } from '../theme.js';

const MAX_TENANTS = 6;
const HEIGHT = 96;
const RECENT_S = 10;
/** The picture shows at least so much, and at most what is known. */
const MIN_SHOWN_S = 10;
const PPM = 1e6;

interface Tenant {
  readonly name: string;
  /** 0 to 1; what its running tasks, or a context of that name, were promised together. */
  readonly promised: number;
  readonly achieved: number;
  readonly colour: number;
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

  constructor(
    private readonly store: Store,
    redraw: () => void,
  ) {
    this.pane = new Pane('Share of the device by tenant over the last minute, dashed what was promised', HEIGHT, redraw);
    this.table = new Table('Shares as a table', ['Tenant', 'Promised', `Achieved, last ${RECENT_S} s`], redraw);
    this.element = el('div', '', this.pane.canvas, this.legend, this.table.element);
  }

  draw(theme: Theme): void {
    const { shares } = this.store;
    const tenants = this.tenants();
    setText(this.aside, SOURCES[shares.source]);
    const promise = (tenant: Tenant): string => (tenant.promised > 0 ? format.percent(tenant.promised, 1) : 'none');
    const make = (): HTMLLIElement => el('li', '', el('i', 'gk-swatch'), el('span', 'gk-label'), el('span', 'gk-amount'));
    syncRows(this.legend, tenants.slice(0, MAX_TENANTS), make, (item, tenant) => {
      const [mark, label, amount] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      mark.style.background = `var(--gk-owner-${tenant.colour})`;
      setText(label, tenant.name);
      label.title = tenant.name;
      setText(amount, `${format.percent(tenant.achieved, 1) || '0 %'}, promised ${promise(tenant)}`);
    });
    this.table.show(
      () => tenants,
      (tenant) => [tenant.name, promise(tenant), format.percent(tenant.achieved, 1) || '0 %'],
    );
    this.pane.draw((context, width, height) => this.paint(context, width, height, theme, tenants.slice(0, MAX_TENANTS)));
  }

  dispose(): void {
    this.pane.dispose();
  }

  private tenants(): Tenant[] {
    const { shares, tasks, contexts } = this.store;
    const promised = new Map<string, number>();
    for (const name of shares.tenants) promised.set(name, 0);
    for (const task of tasks.all) {
      if (task.phase !== Phase.Running && task.phase !== Phase.Admitted) continue;
      const name = this.store.taskName(task);
      promised.set(name, (promised.get(name) ?? 0) + (task.facts?.sharePpm ?? 0) / PPM);
    }
    for (const { name, sharePpm } of contexts) promised.set(name, (promised.get(name) ?? 0) + sharePpm / PPM);
    return [...promised].map(([name, share], i) => ({ name, promised: share, achieved: shares.recent(name, RECENT_S), colour: i % 8 }));
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
    for (const { name, promised, colour } of tenants) {
      context.strokeStyle = theme.owners[colour] ?? theme.text;
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
