// The latency histogram: how long tasks waited and ran, in buckets that double.

import { type Latency, type Store, type Task, format, summarise } from '@pygpukit/core';
import { el, setText } from '../dom.js';
import { Pane } from '../pane.js';
import { Table } from '../table.js';
import { type Theme } from '../theme.js';

const HEIGHT = 84;

export class LatencyChart {
  readonly element: HTMLElement;
  readonly aside = el('span', 'gk-key');
  private readonly pane: Pane;
  private readonly table: Table;
  private readonly words = el('span');
  private summary: readonly Latency[] = [];
  private version = -1;
  private tasks: readonly Task[] = [];

  constructor(
    private readonly store: Store,
    redraw: () => void,
  ) {
    this.pane = new Pane('How many tasks waited and ran how long', HEIGHT, redraw);
    this.table = new Table('Latencies as a table', ['', 'Tasks', 'Median', '99 of 100 within', 'Longest'], redraw);
    const swatch = (name: string): HTMLElement => el('i', `gk-swatch gk-swatch-${name}`);
    this.aside.append(swatch('waited'), 'waited', swatch('ran'), 'ran', this.words);
    this.element = el('div', '', this.pane.canvas, this.table.element);
  }

  draw(theme: Theme, tasks: readonly Task[]): void {
    if (this.version !== this.store.tasks.version || this.tasks !== tasks) {
      this.version = this.store.tasks.version;
      this.tasks = tasks;
      this.summary = summarise(tasks);
    }
    const [waited] = this.summary;
    setText(this.words, waited?.samples ? `median wait ${format.duration(waited.p50Ns)}` : '');
    this.table.show(
      () => this.summary,
      ({ label, samples, p50Ns, p99Ns, maxNs }) => [label, format.count(samples), ...[p50Ns, p99Ns, maxNs].map((ns) => (samples ? format.duration(ns) : '\u2013'))],
    );
    this.pane.draw((context, width, height) => this.paint(context, width, height, theme));
  }

  dispose(): void {
    this.pane.dispose();
  }

  private paint(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme): void {
    const buckets = this.summary[0]?.counts.length ?? 1;
    const peak = Math.max(1, ...this.summary.flatMap(({ counts }) => [...counts]));
    const floor = height - 16;
    const step = width / buckets;
    this.summary.forEach(({ counts }, series) => {
      context.fillStyle = (series === 0 ? theme.phases[2] : theme.phases[4]) ?? theme.text;
      counts.forEach((count, i) => {
        const tall = count > 0 ? Math.max(2, ((floor - 4) * count) / peak) : 0;
        context.fillRect(i * step + series * (step / 2) + 0.5, floor - tall, Math.max(1, step / 2 - 1), tall);
      });
    });
    context.strokeStyle = theme.grid;
    context.strokeRect(0, floor + 0.5, width, 0);
    context.font = `10px ${theme.font}`;
    context.fillStyle = theme.muted;
    context.textBaseline = 'bottom';
    // Every tenth doubling is about a thousand times.
    for (const [bucket, text] of [[0, '1 us'], [10, '1 ms'], [20, '1 s']] as const) {
      context.textAlign = bucket === 0 ? 'left' : 'center';
      context.fillText(text, bucket * step, height);
    }
  }
}
