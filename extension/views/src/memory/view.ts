// The memory instrument: key figures, pool bar, last minute, map by address, owners.

import { type Block, type Gauges, type Store, format } from '@pygpukit/core';
import { el, setText, syncRows } from '../dom.js';
import { type Figure, Figures, section } from '../figures.js';
import { Pane } from '../pane.js';
import { Panel } from '../panel.js';
import { TIMELINE_HEIGHT, drawTimeline } from '../timeline.js';
import { MemoryMap } from './map.js';
import { type Owner, Owners, ownerLabel } from './owners.js';

const LEGEND_ROWS = 8;
const TABLE_ROWS = 200;

export class MemoryView extends Panel {
  private readonly figures = new Figures(['Used', 'Reserved', 'Peak', 'Free on device']);
  private readonly usedBar = el('i', 'gk-bar-used');
  private readonly reservedBar = el('i', 'gk-bar-reserved');
  private readonly bar = el('div', 'gk-bar', this.reservedBar, this.usedBar);
  private readonly barEnd = el('span', 'gk-bar-end');
  private readonly timeline: Pane;
  private readonly map: MemoryMap;
  private readonly mapScale = el('span');
  private readonly legend = el('ul', 'gk-legend');
  private readonly tableBody = el('tbody');
  private readonly table: HTMLDetailsElement;
  private readonly owners: Owners;

  constructor(host: HTMLElement, store: Store) {
    super(host, store, 'GPU memory');
    this.owners = new Owners(this.theme.owners.length);
    this.timeline = new Pane('Used and reserved bytes over the last minute', TIMELINE_HEIGHT, this.schedule);
    this.map = new MemoryMap(store, this.owners, this.schedule);
    this.bar.setAttribute('role', 'img');
    this.table = blockTable(this.tableBody);
    this.table.addEventListener('toggle', this.schedule);
    const key = el('span', 'gk-key', swatch('gk-bar-used'), 'used', swatch('gk-bar-reserved'), 'reserved');
    const scale = el('div', 'gk-bar-scale', el('span', '', '0'), this.barEnd);
    this.body.append(
      this.figures.element,
      section('Pool', key, this.bar, scale),
      section('Last minute', '', this.timeline.canvas),
      section('Memory map', this.mapScale, this.map.element, this.legend),
      this.table,
    );
    this.onDispose(() => {
      this.timeline.dispose();
      this.map.dispose();
    });
  }

  protected override draw(): void {
    const { gauges, history, memory } = this.store;
    if (!gauges) return;
    this.figures.show(keyFigures(gauges));
    this.drawBar(gauges);
    this.timeline.draw((context, width, height) => {
      const { used, reserved } = this.theme;
      const series = [
        { value: (h: typeof history, i: number) => h.reserved(i), colour: reserved, filled: false },
        { value: (h: typeof history, i: number) => h.used(i), colour: used, filled: true },
      ];
      drawTimeline(context, width, height, this.theme, history, series, 2, format.bytes);
    });
    const owners = this.owners.group(this.store);
    const layout = this.map.draw(this.theme);
    const unmapped = layout.unmapped.length ? `, ${layout.unmapped.length} evicted` : '';
    const blocks = `${format.count(memory.size)} ${memory.size === 1 ? 'block' : 'blocks'}${unmapped}`;
    setText(this.mapScale, memory.segments.length ? `${blocks} \u00b7 ${format.bytes(layout.rowBytes)} a row` : blocks);
    this.element.dataset['blocks'] = String(memory.size);
    this.drawLegend(owners);
    if (this.table.open) this.drawTable(memory.byAddress);
  }

  private drawBar(gauges: Gauges): void {
    // Without a limit the device is the limit.
    const limit = format.isUnlimited(gauges.limit) ? gauges.deviceTotal : gauges.limit;
    const whole = Math.max(limit, gauges.reserved, 1);
    this.usedBar.style.width = `${(100 * gauges.used) / whole}%`;
    this.reservedBar.style.width = `${(100 * gauges.reserved) / whole}%`;
    setText(this.barEnd, `${format.bytes(whole)} ${format.isUnlimited(gauges.limit) ? 'on the device' : 'limit'}`);
    const words = `${format.bytes(gauges.used)} used, ${format.bytes(gauges.reserved)} reserved, of ${format.bytes(whole)}`;
    this.bar.setAttribute('aria-label', words);
  }

  private drawLegend(owners: readonly Owner[]): void {
    const shown = owners.slice(0, LEGEND_ROWS);
    const rest = owners.slice(LEGEND_ROWS);
    const rows = shown.map(({ label, colour, bytes }) => ({ label, colour: `var(--gk-owner-${colour})`, bytes }));
    if (rest.length > 0) {
      const bytes = rest.reduce((sum, owner) => sum + owner.bytes, 0);
      rows.push({ label: `${rest.length} more`, colour: 'var(--gk-muted)', bytes });
    }
    const make = (): HTMLLIElement =>
      el('li', '', el('i', 'gk-swatch'), el('span', 'gk-label'), el('span', 'gk-amount'));
    syncRows(this.legend, rows, make, (item, { label, colour, bytes }) => {
      const [mark, name, amount] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      mark.style.background = colour;
      setText(name, label);
      name.title = label;
      setText(amount, format.bytes(bytes));
    });
  }

  private drawTable(blocks: readonly Block[]): void {
    const { store } = this;
    const largest = [...blocks].sort((x, y) => y.bytes - x.bytes).slice(0, TABLE_ROWS);
    const make = (): HTMLTableRowElement => el('tr', '', el('td'), el('td'), el('td'), el('td'), el('td'));
    syncRows(this.tableBody, largest, make, (row, block) => {
      const texts = [
        ownerLabel(store, block),
        format.bytes(block.bytes),
        store.placeOf(block.cell, block.line) || '\u2013',
        format.address(block.address),
        block.resident ? 'device' : 'host',
      ];
      texts.forEach((text, i) => setText(row.children[i] as HTMLElement, text));
    });
  }
}

function keyFigures(gauges: Gauges): Figure[] {
  const parts = (bytes: number): { value: string; unit: string } => {
    const [value, unit] = format.bytesParts(bytes);
    return { value, unit };
  };
  const limited = !format.isUnlimited(gauges.limit) && gauges.limit > 0;
  const evicted = gauges.evicted > 0 ? `, ${format.bytes(gauges.evicted)} evicted` : '';
  return [
    { ...parts(gauges.used), note: limited ? `${format.percent(gauges.used, gauges.limit)} of the limit` : '' },
    { ...parts(gauges.reserved), note: `${format.bytes(gauges.cached)} cached${evicted}` },
    { ...parts(gauges.peakUsed), note: `${format.count(gauges.liveBlocks)} live, ${format.count(gauges.segments)} segments` },
    { ...parts(gauges.deviceFree), note: `of ${format.bytes(gauges.deviceTotal)}` },
  ];
}

function swatch(className: string): HTMLElement {
  return el('i', `gk-swatch ${className}`);
}

function blockTable(body: HTMLElement): HTMLDetailsElement {
  const heads = ['Owner', 'Size', 'Allocated in', 'Address', 'Where'].map((text) => el('th', '', text));
  heads.forEach((head) => (head.scope = 'col'));
  const table = el('table', 'gk-table', el('thead', '', el('tr', '', ...heads)), body);
  return el('details', 'gk-details', el('summary', '', 'Blocks as a table'), el('div', 'gk-scroll', table));
}
