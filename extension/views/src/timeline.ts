// Time series over the last minute: a soft area, an optional second line, a few grid lines, labels inside the plot.

import { type History } from '@pygpukit/core';
import { type Theme } from './theme.js';

export const TIMELINE_HEIGHT = 84;
const SPAN_NS = 60e9;
const BOTTOM = 16;
const TOP = 6;

export interface Series {
  readonly value: (history: History, i: number) => number;
  readonly colour: string;
  readonly filled: boolean;
}

/** The next 1, 2 or 5 times a power of `base` above a value, so that the scale rarely moves. */
export function niceCeiling(value: number, base: 2 | 10): number {
  if (value <= 0) return base === 2 ? 1 << 20 : 10;
  if (base === 2) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

/** A moment to mark on the time axis. */
export interface Mark {
  readonly timeNs: number;
  readonly colour: string;
}

export function drawTimeline(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  theme: Theme,
  history: History,
  series: readonly Series[],
  base: 2 | 10,
  label: (value: number) => string,
  marks: readonly Mark[] = [],
): void {
  const now = history.length > 0 ? history.timeNs(history.length - 1) : 0;
  const from = now - SPAN_NS;
  const first = Math.max(0, history.indexAt(from) - 1);
  let peak = 0;
  for (const { value } of series) for (let i = first; i < history.length; i++) peak = Math.max(peak, value(history, i));
  const top = niceCeiling(peak * 1.05, base);
  const plot = height - TOP - BOTTOM;
  const x = (timeNs: number): number => ((timeNs - from) / SPAN_NS) * width;
  const y = (value: number): number => TOP + plot * (1 - value / top);

  context.lineWidth = 1;
  context.strokeStyle = theme.grid;
  for (const part of [0, 0.5, 1]) {
    const at = Math.round(y(top * part)) + 0.5;
    context.beginPath();
    context.moveTo(0, at);
    context.lineTo(width, at);
    context.stroke();
  }
  for (const { timeNs, colour } of marks) {
    if (timeNs < from) continue;
    context.fillStyle = colour;
    context.fillRect(Math.round(x(timeNs)), TOP, 1.5, plot);
  }
  for (const line of series) trace(context, history, first, line, x, y, TOP + plot);

  context.font = `10px ${theme.font}`;
  context.fillStyle = theme.muted;
  context.textBaseline = 'bottom';
  for (const [text, at, align] of [
    ['60 s ago', 0, 'left'],
    ['30 s', width / 2, 'center'],
    ['now', width, 'right'],
  ] as const) {
    context.textAlign = align;
    context.fillText(text, at, height);
  }
  context.textAlign = 'left';
  context.textBaseline = 'top';
  // On its own patch of surface, so that a line behind it does not cross the text.
  const scale = label(top);
  context.fillStyle = theme.surface;
  context.fillRect(0, y(top) + 2, context.measureText(scale).width + 6, 12);
  context.fillStyle = theme.muted;
  context.fillText(scale, 2, y(top) + 3);
}

function trace(
  context: CanvasRenderingContext2D,
  history: History,
  first: number,
  { value, colour, filled }: Series,
  x: (timeNs: number) => number,
  y: (value: number) => number,
  floor: number,
): void {
  if (history.length === 0) return;
  const path = new Path2D();
  // Steps, not slopes: a figure holds until the next one is read.
  let last = y(value(history, first));
  path.moveTo(x(history.timeNs(first)), last);
  for (let i = first + 1; i < history.length; i++) {
    path.lineTo(x(history.timeNs(i)), last);
    last = y(value(history, i));
    path.lineTo(x(history.timeNs(i)), last);
  }
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  if (filled) {
    const area = new Path2D(path);
    area.lineTo(x(history.timeNs(history.length - 1)), floor);
    area.lineTo(x(history.timeNs(first)), floor);
    area.closePath();
    context.save();
    context.globalAlpha = 0.16;
    context.fillStyle = colour;
    context.fill(area);
    context.restore();
  } else {
    context.setLineDash([3, 3]);
  }
  context.stroke(path);
  context.setLineDash([]);
}
