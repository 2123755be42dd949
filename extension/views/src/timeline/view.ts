// The timeline of a profile: zoom, search, rows by stream or tenant, what a selection sums up to, and what the device waited for.

import { TIMELINE_GROUPINGS, type TimelineData, type TimelineGrouping, type TimelineRow, format, makeRows, nextMatch, searched, sums } from '@pygpukit/core';
import { el, setData, setText, withModifier } from '../dom.js';
import { Pane } from '../pane.js';
import { Table } from '../table.js';
import { type Theme, followTheme, readTheme } from '../theme.js';
import { AXIS_HEIGHT, drawAxis } from '../timed.js';
import { ROW_HEIGHT, type Stretch, coloursOf, paintRows } from './plot.js';

const HEADS = ['name', 'count', 'total', 'mean', 'longest', 'of the stretch'] as const;
const MIN_SPAN_NS = 100;
const ZOOM = 1.5;
const DRAG_PX = 4; // less is a click
const SUMS_AFTER_MS = 120;
const AROUND = 20; // widths of a found record that are shown

export class TimelineView {
  readonly element: HTMLElement;
  private readonly about = el('span', 'gk-device');
  private readonly message = el('p', 'gk-message', 'Waiting for the kernel. If this stays, run the cell that made this view again.');
  private readonly body = el('div', 'gk-body');
  private readonly grouping = el('select', 'gk-input');
  private readonly search = el('input', 'gk-input');
  private readonly matches = el('span', 'gk-note');
  private readonly whole = el('button', 'gk-button', 'Whole');
  private readonly labels = el('div', 'gk-timeline-labels');
  private readonly chosen = el('p', 'gk-timeline-chosen');
  private readonly stretchText = el('p', 'gk-note');
  private readonly notes = el('p', 'gk-note');
  private readonly pane = new Pane('Timeline: works of each stream over time', ROW_HEIGHT + AXIS_HEIGHT, () => this.schedule());
  private readonly table = new Table('What is in it', HEADS, () => this.showSums(), true);
  private readonly ending: () => void;
  private theme: Theme;
  private data: TimelineData | null = null;
  private rows: TimelineRow[] = [];
  private colourOf: (record: number) => string = () => '';
  private holds: ((record: number) => boolean) | null = null;
  private window: Stretch = { fromNs: 0, toNs: 1 };
  private selection: Stretch | null = null;
  private record = -1; // of the work whose times and place the line below the rows shows, -1 for none
  private dragFrom: { x: number; window: Stretch; pans: boolean } | null = null;
  private pending = 0;
  private summing = 0;

  constructor(host: HTMLElement) {
    this.grouping.setAttribute('aria-label', 'Rows by');
    this.grouping.append(...TIMELINE_GROUPINGS.map((name) => el('option', '', name)));
    this.grouping.addEventListener('change', () => this.regroup());
    this.search.type = 'search';
    this.search.placeholder = 'Find a name or a cell';
    this.search.setAttribute('aria-label', 'Find a name or a cell');
    this.search.addEventListener('input', () => this.find());
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.next(event.shiftKey ? -1 : 1);
    });
    this.matches.setAttribute('role', 'status');
    this.whole.type = 'button';
    this.whole.addEventListener('click', () => this.show(this.all()));
    const { canvas } = this.pane;
    canvas.tabIndex = 0;
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.drag(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('dblclick', () => this.selection && this.show(this.selection));
    canvas.addEventListener('keydown', (event) => this.key(event));
    const controls = el('div', 'gk-timeline-controls', el('label', '', 'rows by ', this.grouping), this.search, this.matches, this.whole);
    const picture = el('div', 'gk-timeline', this.labels, el('div', 'gk-timeline-picture', canvas));
    const hint = el('p', 'gk-note', 'Ctrl and the wheel, + and \u2212 zoom, arrows move; drag to sum up a stretch, with Shift to move; a double click shows the stretch.');
    this.body.append(controls, picture, this.chosen, this.stretchText, this.table.element, this.notes, hint);
    this.body.hidden = true;
    this.element = el('section', 'gk-panel', el('header', 'gk-head', el('span', 'gk-title', 'Timeline'), this.about), this.message, this.body);
    this.element.setAttribute('aria-label', 'Timeline');
    this.element.addEventListener('keydown', (event) => {
      if (!withModifier(event)) event.stopPropagation();
    });
    host.append(this.element);
    this.theme = readTheme(this.element);
    this.ending = followTheme(this.element, (theme) => {
      this.theme = theme;
      if (this.data) this.colourOf = coloursOf(this.data, theme);
      this.schedule();
    });
  }

  /** How much of it has come, or why it does not. */
  tell(text: string): void {
    setText(this.message, text);
    this.message.hidden = text === '';
  }

  /** All records are here, of the first profile or of another one. */
  begin(data: TimelineData): void {
    this.data = data;
    this.selection = this.dragFrom = null;
    this.choose(-1);
    this.colourOf = coloursOf(data, this.theme);
    this.body.hidden = false;
    this.tell('');
    setText(this.about, `${format.count(data.length)} records in ${format.duration(data.head.spanNs)}`);
    setText(this.notes, data.head.notes.join('; '));
    this.notes.hidden = data.head.notes.length === 0;
    this.window = this.all();
    this.regroup();
  }

  dispose(): void {
    cancelAnimationFrame(this.pending);
    clearTimeout(this.summing);
    this.ending();
    this.pane.dispose();
    this.element.remove();
  }

  private all(): Stretch {
    return { fromNs: 0, toNs: this.data?.head.spanNs ?? 1 };
  }

  private regroup(): void {
    if (!this.data) return;
    this.rows = makeRows(this.data, this.grouping.value as TimelineGrouping);
    this.pane.setHeight(this.rows.length * ROW_HEIGHT + AXIS_HEIGHT);
    this.labels.replaceChildren(...this.rows.map(({ label }) => el('div', 'gk-timeline-label', label)));
    [...this.labels.children].forEach((label) => ((label as HTMLElement).title = label.textContent ?? ''));
    this.find();
  }

  private find(): void {
    if (!this.data) return;
    const { data } = this;
    this.holds = searched(data, this.search.value);
    let count = 0;
    if (this.holds) for (let i = 0; i < data.length; i++) count += this.holds(i) ? 1 : 0;
    for (const { levels } of this.rows) levels.mark(this.holds);
    setText(this.matches, this.holds ? `${format.count(count)} found` : '');
    this.schedule();
  }

  private next(step: 1 | -1): void {
    if (!this.data || !this.holds) return;
    const record = nextMatch(this.data.length, this.record, step, this.holds);
    if (record < 0) return;
    this.choose(record);
    const [begin, took] = [this.data.beginNs[record] as number, Math.max(this.data.tookNs[record] as number, MIN_SPAN_NS)];
    if (begin < this.window.fromNs || begin + took > this.window.toNs) this.show({ fromNs: begin - AROUND * took, toNs: begin + AROUND * took });
  }

  private choose(record: number): void {
    this.record = record;
    this.schedule();
    if (!this.data || record < 0) return setText(this.chosen, '');
    const { head, beginNs, tookNs, name, lane, place } = this.data;
    const { device, stream, tenant, waits } = head.lanes[lane[record] as number] as TimelineData['head']['lanes'][number];
    const { cell, line, detail } = head.places[place[record] as number] as TimelineData['head']['places'][number];
    const where = waits ? `device ${device} waited` : `stream ${stream} of device ${device}${tenant && `, ${tenant}`}`;
    const parts = [
      `${head.names[name[record] as number] ?? ''}: ${format.duration(tookNs[record] as number)} at ${format.duration(beginNs[record] as number)}`,
      where,
      detail,
      line > 0 ? `${waits ? 'then ' : ''}${cell}, line ${line}` : '',
    ];
    setText(this.chosen, parts.filter((part) => part !== '').join(' \u00b7 '));
  }

  private show({ fromNs, toNs }: Stretch): void {
    const wholeNs = this.all().toNs;
    const span = Math.min(wholeNs, Math.max(MIN_SPAN_NS, toNs - fromNs));
    const from = Math.min(Math.max(0, (fromNs + toNs - span) / 2), wholeNs - span);
    this.window = { fromNs: from, toNs: from + span };
    this.schedule();
  }

  /** Zooms by a factor about a place, 0 to 1 of the width. */
  private zoom(factor: number, place: number): void {
    const { fromNs, toNs } = this.window;
    const span = Math.max(MIN_SPAN_NS, (toNs - fromNs) / factor);
    const about = fromNs + place * (toNs - fromNs);
    this.show({ fromNs: about - place * span, toNs: about + (1 - place) * span });
  }

  private move(part: number): void {
    const { fromNs, toNs } = this.window;
    const by = part * (toNs - fromNs);
    this.show({ fromNs: fromNs + by, toNs: toNs + by });
  }

  private key(event: KeyboardEvent): void {
    if (withModifier(event)) return;
    const acts: Readonly<Record<string, () => void>> = {
      '+': () => this.zoom(ZOOM, 0.5),
      '=': () => this.zoom(ZOOM, 0.5),
      '-': () => this.zoom(1 / ZOOM, 0.5),
      ArrowLeft: () => this.move(-0.2),
      ArrowRight: () => this.move(0.2),
      Home: () => this.show(this.all()),
      Escape: () => this.select(null),
    };
    const act = acts[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    this.zoom(2 ** (-event.deltaY / 240), event.offsetX / Math.max(1, this.pane.widthPx));
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.pane.canvas.setPointerCapture(event.pointerId);
    this.dragFrom = { x: event.offsetX, window: this.window, pans: event.shiftKey };
  }

  private drag({ offsetX }: PointerEvent): void {
    if (!this.dragFrom || Math.abs(offsetX - this.dragFrom.x) < DRAG_PX) return;
    const { x, window, pans } = this.dragFrom;
    const perPx = (window.toNs - window.fromNs) / Math.max(1, this.pane.widthPx);
    if (pans) return this.show({ fromNs: window.fromNs - (offsetX - x) * perPx, toNs: window.toNs - (offsetX - x) * perPx });
    const [left, right] = [Math.max(0, Math.min(x, offsetX)), Math.min(this.pane.widthPx, Math.max(x, offsetX))];
    this.select({ fromNs: window.fromNs + left * perPx, toNs: window.fromNs + right * perPx });
  }

  private release({ offsetX, offsetY }: PointerEvent): void {
    const from = this.dragFrom;
    this.dragFrom = null;
    if (!from || Math.abs(offsetX - from.x) >= DRAG_PX) return;
    const perPx = (this.window.toNs - this.window.fromNs) / Math.max(1, this.pane.widthPx);
    this.choose(this.rows[Math.floor(offsetY / ROW_HEIGHT)]?.levels.at(this.window.fromNs + offsetX * perPx) ?? -1);
  }

  private select(selection: Stretch | null): void {
    this.selection = selection;
    this.schedule();
  }

  private schedule(): void {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
    clearTimeout(this.summing);
    this.summing = window.setTimeout(() => this.showSums(), SUMS_AFTER_MS);
  }

  /** Of the selection, else of what is in sight. */
  private showSums(): void {
    if (!this.data) return;
    const { fromNs, toNs } = this.selection ?? this.window;
    const span = toNs - fromNs;
    setText(this.stretchText, `${this.selection ? 'Selected' : 'In sight'}: ${format.duration(span)} from ${format.duration(fromNs)} on`);
    const data = this.data;
    this.table.show(
      () => sums(data, this.rows, fromNs, toNs),
      ({ name, waits, count, totalNs, longestNs }) => [
        waits ? `waited for ${name}` : name,
        format.count(count),
        format.duration(totalNs),
        format.duration(totalNs / count),
        format.duration(longestNs),
        `${((100 * totalNs) / span).toFixed(1)} %`,
      ],
    );
  }

  private draw(): void {
    const { data, theme, rows, window: shown, selection } = this;
    if (!data || !this.element.isConnected) return;
    this.pane.draw((context, width, height) => {
      drawAxis(context, width, height, theme, shown, Infinity);
      context.save();
      context.beginPath();
      context.rect(0, 0, width, height - AXIS_HEIGHT);
      context.clip();
      context.textAlign = 'left';
      context.textBaseline = 'middle';
      const frame = paintRows(context, data, rows, shown, width, this.colourOf, this.holds !== null, theme.surface);
      const x = (timeNs: number): number => ((timeNs - shown.fromNs) / (shown.toNs - shown.fromNs)) * width;
      if (selection) {
        context.fillStyle = theme.text;
        context.globalAlpha = 0.14;
        context.fillRect(x(selection.fromNs), 0, Math.max(1, x(selection.toNs) - x(selection.fromNs)), height);
        context.globalAlpha = 1;
      }
      const at = this.record < 0 ? -1 : rows.findIndex(({ levels }) => levels.has(this.record));
      if (at >= 0) {
        const [begin, took] = [data.beginNs[this.record] as number, data.tookNs[this.record] as number];
        context.strokeStyle = theme.text;
        context.lineWidth = 2;
        context.strokeRect(x(begin), at * ROW_HEIGHT + 1, Math.max(2, x(begin + took) - x(begin)), ROW_HEIGHT - 3);
      }
      context.restore();
      setData(this.element, { from: Math.round(shown.fromNs), to: Math.round(shown.toNs), bars: frame.bars, seen: frame.seen });
    });
  }
}
