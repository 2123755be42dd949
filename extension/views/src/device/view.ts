// The device strip: what the device tells of itself; where it does not, the field says why.

import { type Channel, type DeviceField, type DeviceSample, type Store, format } from '@pygpukit/core';
import { el, setData, setText, syncRows } from '../dom.js';
import { section } from '../figures.js';
import { Pane } from '../pane.js';
import { Panel } from '../panel.js';
import { Table } from '../table.js';

const SPARK_HEIGHT = 64;
const DRAWN = 120;
/** Percentages over time: key of the field, index of its colour. */
const LINES: readonly [string, number][] = [
  ['gpu_utilization', 0],
  ['memory_utilization', 1],
];

export class DeviceView extends Panel {
  private readonly grid = el('div', 'gk-device-grid');
  private readonly source = el('p', 'gk-chosen');
  private readonly pane: Pane;
  private readonly chart: HTMLElement;
  private readonly table: Table;
  private readonly processes: Table;

  constructor(host: HTMLElement, store: Store, _channel: Channel) {
    super(host, store, 'GPU device');
    this.pane = new Pane('Utilisation over the last samples', SPARK_HEIGHT, this.schedule);
    this.table = new Table('Fields as a table', ['Field', 'Value', 'Note'], this.schedule);
    this.processes = new Table('Processes on the device', ['Process', 'Name', 'Memory'], this.schedule);
    const key = el('span', 'gk-key', el('i', 'gk-swatch gk-bar-used'), 'GPU', el('i', 'gk-swatch gk-swatch-memory'), 'memory');
    this.chart = section('Utilisation', key, this.pane.canvas);
    this.body.append(this.source, this.grid, this.chart, this.processes.element, this.table.element);
    this.onDispose(() => this.pane.dispose());
  }

  protected override hasData(): boolean {
    return this.store.deviceSamples.total > 0;
  }

  protected override draw(): void {
    const samples = this.store.deviceSamples.all;
    const sample = samples.at(-1);
    if (!sample) return;
    setText(this.source, sample.source);
    setData(this.element, { samples: this.store.deviceSamples.total });
    this.drawFields(sample);
    const measured = samples.some(({ fields }) => fields.some(({ key, value }) => key === LINES[0]?.[0] && value !== null));
    this.chart.hidden = !measured;
    if (measured) this.pane.draw((context, width, height) => this.paint(context, width, height, samples.slice(-DRAWN)));
    this.table.show(
      () => sample.fields,
      (field) => [field.label, valueText(field), field.note],
    );
    this.processes.show(
      () => sample.processes,
      ([pid, name, bytes]) => [String(pid), name, bytes < 0 ? 'not told' : format.bytes(bytes)],
    );
  }

  private drawFields({ fields, source }: DeviceSample): void {
    const make = (): HTMLElement => el('div', 'gk-figure', el('div', 'gk-figure-label'), el('div', 'gk-value'), el('div', 'gk-note'));
    syncRows(this.grid, fields, make, (cell, field) => {
      const [label, value, note] = cell.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      setText(label, field.label);
      setText(value, valueText(field));
      setText(note, field.note === source ? '' : field.note); // it stands above them all
      cell.classList.toggle('gk-absent', field.value === null);
      setData(cell, { field: field.key });
    });
  }

  private paint(context: CanvasRenderingContext2D, width: number, height: number, samples: readonly DeviceSample[]): void {
    context.strokeStyle = this.theme.grid;
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(2 + part * (height - 4)) + 0.5;
      context.beginPath();
      context.moveTo(0, at);
      context.lineTo(width, at);
      context.stroke();
    }
    for (const [key, colour] of LINES) {
      context.strokeStyle = this.theme.owners[colour] ?? this.theme.text;
      context.lineWidth = 1.5;
      context.beginPath();
      samples.forEach(({ fields }, i) => {
        const value = fields.find((field) => field.key === key)?.value;
        if (value === null || value === undefined) return;
        context.lineTo((i / Math.max(1, DRAWN - 1)) * width, 2 + (1 - value / 100) * (height - 4));
      });
      context.stroke();
    }
  }
}

/** "61 %", "12.5 GiB"; "not available" where nothing could be read. */
export function valueText({ value, unit }: DeviceField): string {
  if (value === null) return 'not available';
  if (unit === 'B') return format.bytes(value);
  if (unit === 'B/s') return `${format.bytes(value)}/s`;
  return `${Number.isInteger(value) ? format.count(value) : value.toFixed(1)}${unit ? ` ${unit}` : ''}`;
}
