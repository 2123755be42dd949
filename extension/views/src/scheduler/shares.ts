// Promised share against achieved share: what each tenant had over its promise, which is a line of steps, and a table.

import { BUCKET_NS, type Step, type Store, type Task, format, promisedSteps } from '@pygpukit/core';
import { Colours } from '../colours.js';
import { el, setData, setLabel, setText, syncRows } from '../dom.js';
import { Table } from '../table.js';
import { type Theme } from '../theme.js';
import { type Plot, Timed, type Window, drawGap } from '../timed.js';

/** Lines that can be told apart; the table has every tenant. */
const MAX_LINES = 6;
const HEIGHT = 116;
const RECENT_S = 10;

export interface Tenant {
  readonly name: string;
  /** 0 to 1; what it was promised last in the window that is shown, 0 where it was promised nothing. */
  readonly promised: number;
  readonly achieved: number;
  readonly steps: readonly Step[];
  /** Why it had less than it was promised; "" where it had that. */
  readonly shortfall: string;
}

/** Who was busy in a window or was promised something in it; of the tasks that are given, and of contexts. follows: the window ends now. */
export function tenantsOf(store: Store, tasks: readonly Task[], window: Window, follows = true): Tenant[] {
  const { shares } = store;
  const name = (task: Task): string => store.taskName(task);
  const steps = promisedSteps(tasks, name, store.contextPromises, window.fromNs);
  // Of one scheduler alone, only its own tenants.
  const own = tasks === store.tasks.all ? null : new Set(tasks.map(name));
  const busy = shares.tenants.filter((one) => (!own || own.has(one)) && isBusy(store, one, window));
  return [...new Set([...busy, ...steps.keys()])].flatMap((one) => {
    const all = steps.get(one) ?? [];
    const promised = promiseIn(all, window);
    if (promised === 0 && !busy.includes(one)) return [];
    const lately = promised > 0 ? latelyOf(store, tasks, one, follows ? Infinity : window.toNs) : null;
    const { share: achieved, shortfall } = lately ?? { share: shares.meanBefore(one, window.toNs, RECENT_S), shortfall: '' };
    return [{ name: one, promised, achieved, steps: all, shortfall: achieved < promised ? shortfall : '' }];
  });
}

interface Lately {
  readonly share: number;
  readonly shortfall: string;
  readonly endNs: number;
}

/**
 * What the kernel measured of the last seconds before a moment and says of them, so that figure and reason are of one span: of those that
 * run together, else of the last that ran. Null where it did not say.
 */
function latelyOf(store: Store, tasks: readonly Task[], tenant: string, untilNs: number): Lately | null {
  const facts = tasks.filter((task) => store.taskName(task) === tenant).map((task) => ({ ...task.facts, endNs: task.facts?.finishedNs }));
  const contexts = store.contexts.filter(({ name }) => name === tenant).map((context) => ({ ...context, endNs: context.endedNs }));
  const lately = [...contexts, ...facts].flatMap(({ share, shortfall = '', endNs }): Lately[] => (share === undefined ? [] : [{ share, shortfall, endNs: endNs || Infinity }]));
  const endNs = Math.max(...lately.map((one) => one.endNs));
  const last = lately.filter((one) => one.endNs === endNs);
  if (last.length === 0 || endNs > untilNs) return null;
  return { share: last.reduce((sum, { share }) => sum + share, 0), shortfall: last.findLast((one) => one.shortfall)?.shortfall ?? '', endNs };
}

function isBusy({ shares }: Store, tenant: string, { fromNs, toNs }: Window): boolean {
  for (let second = Math.floor(fromNs / BUCKET_NS); second * BUCKET_NS < toNs; second++) {
    if (shares.shareIn(tenant, second) > 0) return true;
  }
  return false;
}

/** The last promise that was more than nothing while the window lasted. */
function promiseIn(steps: readonly Step[], { fromNs, toNs }: Window): number {
  for (let i = steps.length - 1; i >= 0; i--) {
    const { fromNs: at, share } = steps[i] as Step;
    const untilNs = steps[i + 1]?.fromNs ?? Infinity;
    if (at <= toNs && untilNs > fromNs && share > 0) return share;
  }
  return 0;
}

/** Those with most, in the order in which they were given. */
export function largest(tenants: readonly Tenant[], count: number): Tenant[] {
  const chosen = new Set([...tenants].sort((one, other) => other.promised + other.achieved - one.promised - one.achieved).slice(0, count));
  return tenants.filter((tenant) => chosen.has(tenant));
}

const SOURCES = {
  device: 'achieved: measured device time',
  host: 'achieved: time of host launches',
  '': 'nothing measured yet',
} as const;

export class ShareChart {
  readonly element: HTMLElement;
  readonly aside = el('span', 'gk-key');
  private readonly source = el('span');
  private readonly picture: Timed;
  private readonly legend = el('ul', 'gk-legend gk-legend-wide');
  private readonly table: Table;

  constructor(
    private readonly store: Store,
    private readonly colours: Colours,
    redraw: () => void,
  ) {
    this.picture = new Timed('Share of the device by tenant; dashed what was promised', HEIGHT, redraw);
    this.table = new Table('Shares as a table', ['Tenant', 'Promised', `Achieved, its last ${RECENT_S} s`, 'Less than promised'], redraw);
    this.aside.append(el('i', 'gk-stroke'), this.source, el('i', 'gk-stroke gk-stroke-dashed'), 'promised');
    this.element = el('div', '', this.picture.element, this.legend, this.table.element);
  }

  /** Returns the names that have a line. */
  draw(theme: Theme, window: Window, tasks: readonly Task[], follows: boolean): string[] {
    const { store } = this;
    const tenants = tenantsOf(store, tasks, window, follows);
    const lines = largest(tenants, MAX_LINES);
    setText(this.source, SOURCES[store.shares.source]);
    const promise = ({ promised }: Tenant): string => (promised > 0 ? format.percent(promised, 1) : 'none');
    const achieved = (tenant: Tenant): string => format.percent(tenant.achieved, 1);
    const rows = lines.map((tenant) => ({ name: tenant.name, colour: `var(--gk-owner-${this.colours.of(tenant.name)})`, amount: `${achieved(tenant)}, promised ${promise(tenant)}${tenant.shortfall && `: ${tenant.shortfall}`}` }));
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
      (tenant) => [tenant.name, promise(tenant), achieved(tenant), tenant.shortfall || '\u2013'],
    );
    // What the picture shows, for readers of the page and tests.
    setData(this.element, { steps: lines.map(({ steps }) => steps.length).join(' ') });
    this.picture.draw(theme, window, store.timeNs, ['100 %', '50 %', '0'], (plot) => this.paint(plot, theme, window, lines));
    return lines.map(({ name }) => name);
  }

  dispose(): void {
    this.picture.dispose();
  }

  private paint(plot: Plot, theme: Theme, window: Window, tenants: readonly Tenant[]): void {
    const { shares, timeNs } = this.store;
    const { context, x, top, floor } = plot;
    const y = (share: number): number => floor - Math.min(1, share) * (floor - top);
    const first = Math.floor(window.fromNs / BUCKET_NS);
    // The second under way is not full yet.
    const end = Math.ceil(Math.min(window.toNs, Math.floor(timeNs / BUCKET_NS) * BUCKET_NS) / BUCKET_NS);
    this.paintGaps(plot, theme, first, end);
    for (const { name, steps } of tenants) {
      context.strokeStyle = theme.owners[this.colours.of(name)] ?? theme.text;
      context.lineWidth = 1.75;
      context.beginPath();
      let known = false;
      for (let second = first; second < end; second++) {
        const share = shares.shareIn(name, second);
        const [left, right] = [x(second * BUCKET_NS), x((second + 1) * BUCKET_NS)];
        if (Number.isNaN(share)) known = false;
        else {
          if (known) context.lineTo(left, y(share));
          else context.moveTo(left, y(share));
          context.lineTo(right, y(share));
          known = true;
        }
      }
      context.stroke();
      context.lineWidth = 1.5;
      context.setLineDash([5, 4]);
      context.beginPath();
      steps.forEach(({ fromNs, share }, i) => {
        const [left, right] = [x(fromNs), x(steps[i + 1]?.fromNs ?? Math.min(timeNs, window.toNs))];
        if (i === 0) context.moveTo(left, floor);
        context.lineTo(left, y(share));
        context.lineTo(Math.max(left, right), y(share));
      });
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** Seconds of which nothing is known, between such of which something is. */
  private paintGaps(plot: Plot, theme: Theme, first: number, end: number): void {
    let last = -1;
    for (let second = first; second < end; second++) {
      if (Number.isNaN(this.store.shares.shareIn('', second))) continue;
      if (last >= 0 && second > last + 1) drawGap(plot, theme, (last + 1) * BUCKET_NS, second * BUCKET_NS, plot.width);
      last = second;
    }
  }
}
