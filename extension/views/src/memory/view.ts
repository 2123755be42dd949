// The memory instrument: key figures, pool bar, last minute, map by address, owners.

import { type Channel, type Gauges, Kind, type MemoryEvent, type Store, format, fragmentation } from '@pygpukit/core';
import { Controls } from '../controls.js';
import { el, setData, setText, syncRows } from '../dom.js';
import { type Figure, Figures, section } from '../figures.js';
import { Panel } from '../panel.js';
import { revealCell } from '../reveal.js';
import { Table } from '../table.js';
import { Timed, ceiling, drawHistory, lastMinute } from '../timed.js';
import { MemoryMap } from './map.js';
import { type Owner, Owners, VIEWS, ownerLabel } from './owners.js';

const LEGEND_ROWS = 8;
const TIMELINE_HEIGHT = 90;
const EVENTS: ReadonlyMap<number, string> = new Map([
  [Kind.EVICT, 'evicted'],
  [Kind.RESTORE, 'restored'],
  [Kind.OUT_OF_MEMORY, 'did not fit'],
]);

export class MemoryView extends Panel {
  private readonly scattered = el('p', 'gk-scattered');
  private readonly figures = new Figures(['Used', 'Reserved', 'Peak', 'Free on device']);
  private readonly usedBar = el('i', 'gk-bar-used');
  private readonly reservedBar = el('i', 'gk-bar-reserved');
  private readonly bar = el('div', 'gk-bar', this.reservedBar, this.usedBar);
  private readonly barEnd = el('span', 'gk-bar-end');
  private readonly timeline: Timed;
  private readonly map: MemoryMap;
  private readonly mapScale = el('span');
  private readonly legend = el('ul', 'gk-legend');
  private readonly table: Table;
  private readonly events: Table;
  private readonly peaks: Table;
  private readonly caches: Table;
  private readonly owners: Owners;

  constructor(host: HTMLElement, store: Store, channel: Channel) {
    super(host, store, 'GPU memory');
    this.owners = new Owners(this.theme.owners.length);
    this.timeline = new Timed('Used and reserved bytes over the last minute; lines mark evictions and restores', TIMELINE_HEIGHT, this.schedule);
    this.map = new MemoryMap(store, this.owners, this.schedule);
    this.bar.setAttribute('role', 'img');
    this.table = new Table('Blocks as a table', ['Owner', 'Size', 'Allocated in', 'Address', 'Where'], this.schedule);
    this.events = new Table('Evictions and restores', ['At', 'What', 'Size', 'Owner'], this.schedule);
    this.peaks = new Table('Peaks by cell', ['Cell', 'Peak', 'Kept', 'Held, unnamed'], this.schedule);
    this.caches = new Table('KV caches by sequence', ['Model', 'Holder', 'Blocks', 'Shared', 'Size'], this.schedule);
    const controls = new Controls(channel, 'Memory controls');
    controls.field('quota', 'Set limit', 'such as 2GB', (limit) => ({ limit }));
    controls.button('trim', 'Release cached memory');
    const key = (): HTMLElement => el('span', 'gk-key', swatch('gk-bar-used'), 'used', swatch('gk-bar-reserved'), 'reserved');
    const scale = el('div', 'gk-bar-scale', el('span', '', '0'), this.barEnd);
    this.body.append(
      this.figures.element,
      this.scattered,
      section('Pool', key(), this.bar, scale),
      section('Memory map', el('span', 'gk-key', this.mapScale, this.viewChoice()), this.map.element, this.legend),
      section('Last minute', key(), this.timeline.element),
      controls.element,
      this.caches.element,
      this.peaks.element,
      this.events.element,
      this.table.element,
    );
    this.onDispose(() => {
      this.timeline.dispose();
      this.map.dispose();
      this.owners.dispose();
    });
  }

  protected override draw(): void {
    const { gauges, memory } = this.store;
    if (!gauges) return;
    this.figures.show(keyFigures(gauges));
    setData(this.element, { fragmentation: fragmentation(memory.segments, memory.byAddress).toFixed(4) });
    const failed = this.store.memoryEvents.all.findLast(({ scattered }) => scattered);
    this.scattered.hidden = !failed;
    setText(this.scattered, failed ? scatteredText(failed) : '');
    this.drawBar(gauges);
    this.drawTimeline();
    const owners = this.owners.group(this.store, this.map.view);
    const layout = this.map.draw(this.theme);
    const unmapped = layout.unmapped.length ? `, ${layout.unmapped.length} evicted` : '';
    const blocks = `${format.count(memory.size)} ${memory.size === 1 ? 'block' : 'blocks'}${unmapped}`;
    setText(this.mapScale, memory.segments.length ? `${blocks} \u00b7 ${format.bytes(layout.rowBytes)} a row` : blocks);
    this.element.dataset['blocks'] = String(memory.size);
    this.drawLegend(owners);
    this.drawTables();
  }

  private drawTimeline(): void {
    const { history, timeNs } = this.store;
    const series = [
      { value: (h: typeof history, i: number) => h.reserved(i), colour: this.theme.reserved, filled: false },
      { value: (h: typeof history, i: number) => h.used(i), colour: this.theme.used, filled: true },
    ];
    const window = lastMinute(timeNs);
    const top = ceiling(history, series, window, 2);
    this.timeline.draw(this.theme, window, timeNs, [format.bytes(top), format.bytes(top / 2), '0'], (plot) => {
      for (const { timeNs: at, colour } of this.marks()) {
        plot.context.fillStyle = colour;
        plot.context.fillRect(Math.round(plot.x(at)), plot.top, 1.5, plot.floor - plot.top);
      }
      drawHistory(plot, this.theme, history, series, top, window);
    });
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

  private viewChoice(): HTMLElement {
    const choice = el('select', 'gk-input', ...VIEWS.map((name) => el('option', '', name)));
    choice.setAttribute('aria-label', 'Arrange blocks by');
    choice.addEventListener('change', () => {
      this.map.view = VIEWS[choice.selectedIndex] ?? 'address';
      this.schedule();
    });
    return el('label', 'gk-choice', 'by ', choice);
  }

  private marks(): { timeNs: number; colour: string }[] {
    const colourOf = (kind: number): string => this.theme.phases[kind === Kind.RESTORE ? 6 : kind === Kind.EVICT ? 5 : 7] ?? this.theme.text;
    return this.store.memoryEvents.all.map(({ timeNs, kind }) => ({ timeNs, colour: colourOf(kind) }));
  }

  private drawTables(): void {
    const { store } = this;
    const owner = ({ name, tenant }: MemoryEvent): string => store.nameOf(name) || store.nameOf(tenant) || 'unnamed';
    this.caches.element.hidden = store.caches.length === 0;
    this.caches.show(
      () => store.caches,
      ({ cache, holder, blocks, shared, bytes }) => [cache, holder, format.count(blocks), format.count(shared), format.bytes(bytes)],
    );
    this.peaks.show(
      () => [...store.cells].reverse(),
      ({ count, peak, kept, leaked }) => [`In [${count}]`, format.bytes(peak), format.bytes(kept), format.bytes(leaked)],
      ({ cell }) => void revealCell(this.element, cell),
    );
    this.events.show(
      () => [...store.memoryEvents.all].reverse(),
      (event) => [`${(event.timeNs / 1e9).toFixed(3)} s`, EVENTS.get(event.kind) ?? '', format.bytes(event.bytes), owner(event)],
    );
    this.table.show(
      () => [...store.memory.byAddress].sort((x, y) => y.bytes - x.bytes),
      (block) => [
        ownerLabel(store, block),
        format.bytes(block.bytes),
        store.placeOf(block.cell, block.line) || '\u2013',
        format.address(block.address),
        block.resident ? 'device' : 'host',
      ],
      (block) => void revealCell(this.element, store.nameOf(block.cell)),
    );
  }
}

/** Fragmentation matters where something did not fit because of it, and is said there alone. */
function scatteredText({ bytes, scattered }: MemoryEvent): string {
  const { free, largest } = scattered ?? { free: 0, largest: 0 };
  const part = format.percent(free - largest, free);
  return `Fragmentation: ${format.bytes(bytes)} did not fit though ${format.bytes(free)} were free. The largest piece was ${format.bytes(largest)}: ${part} of the free space was out of reach.`;
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
