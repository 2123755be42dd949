// Pictures over time: they stand between the same edges, under one axis, with their scale beside them and gaps as gaps.

import { type History, format } from '@pygpukit/core';
import { el, setText } from './dom.js';
import { Pane } from './pane.js';
import { type Theme } from './theme.js';

export const AXIS_HEIGHT = 18;
const TOP = 6;
const PX_PER_STEP = 90;
const MIN_LABEL_PX = 84;

/** The stretch of time that the pictures of a panel show. */
export interface Window {
  readonly fromNs: number;
  readonly toNs: number;
}

/** What a picture of values is painted in. */
export interface Plot {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly top: number;
  readonly floor: number;
  x(timeNs: number): number;
}

/** A picture with a scale at its left, of three marks from the top down. */
export class Timed {
  readonly element: HTMLElement;
  private readonly pane: Pane;
  private readonly marks = [el('span'), el('span'), el('span')];

  constructor(label: string, height: number, redraw: () => void) {
    this.pane = new Pane(label, height, redraw);
    const scale = el('div', 'gk-scale', ...this.marks);
    scale.setAttribute('aria-hidden', 'true');
    this.element = el('div', 'gk-timed', scale, el('div', 'gk-timed-picture', this.pane.canvas), el('div'));
  }

  draw(theme: Theme, window: Window, nowNs: number, marks: readonly [string, string, string], paint: (plot: Plot) => void): void {
    this.marks.forEach((mark, i) => setText(mark, marks[i] ?? ''));
    this.pane.draw((context, width, height) => {
      const floor = height - AXIS_HEIGHT;
      drawAxis(context, width, height, theme, window, nowNs);
      context.strokeStyle = theme.grid;
      context.lineWidth = 1;
      for (const part of [0, 0.5, 1]) {
        const at = Math.round(TOP + part * (floor - TOP)) + 0.5;
        context.beginPath();
        context.moveTo(0, at);
        context.lineTo(width, at);
        context.stroke();
      }
      const scale = width / (window.toNs - window.fromNs);
      context.save();
      context.beginPath();
      context.rect(0, 0, width, floor + 1);
      context.clip();
      paint({ context, width, top: TOP, floor, x: (timeNs) => (timeNs - window.fromNs) * scale });
      context.restore();
    });
  }

  dispose(): void {
    this.pane.dispose();
  }
}

/** The next 1, 2 or 5 times a power of ten above a step. */
function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((part) => part * power >= value) ?? 10) * power;
}

/** Lines down the picture and times below: before now where the picture ends now, else since its beginning. */
export function drawAxis(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme, window: Window, nowNs: number): void {
  const spanNs = window.toNs - window.fromNs;
  const step = niceStep((spanNs * PX_PER_STEP) / Math.max(PX_PER_STEP, width));
  const live = Math.abs(window.toNs - nowNs) < 1;
  context.font = `10px ${theme.font}`;
  context.fillStyle = theme.muted;
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.textBaseline = 'bottom';
  for (let at = 0; at <= spanNs * (1 + 1e-9); at += step) {
    const place = (live ? 1 - at / spanNs : at / spanNs) * width;
    const x = Math.min(width - 0.5, Math.round(place) + 0.5);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS_HEIGHT + 2);
    context.stroke();
    const words = at === 0 ? (live ? 'now' : '0 s') : `${live ? '\u2212' : ''}${format.duration(at).replace('.0 ', ' ')}`;
    const half = context.measureText(words).width / 2;
    // A label that would be cut off at an edge stands inside it; at the far edge there is none.
    if (at > 0 && (place < half || place > width - half)) continue;
    context.textAlign = 'center';
    context.fillText(words, Math.min(Math.max(x, half), width - half), height);
  }
}

/** Where nothing is known: a pale field, which says so where there is room. */
export function drawGap({ context, top, floor, x }: Plot, theme: Theme, fromNs: number, toNs: number, width: number): void {
  const [left, right] = [Math.max(0, x(fromNs)), Math.min(width, x(toNs))];
  if (right <= left) return;
  context.fillStyle = theme.well;
  context.fillRect(left, top, right - left, floor - top);
  if (right - left < MIN_LABEL_PX) return;
  context.fillStyle = theme.muted;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText('not recorded', (left + right) / 2, (top + floor) / 2);
}

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

/** The most that the series have in a window, as the top of a scale. */
export function ceiling(history: History, series: readonly Series[], { fromNs, toNs }: Window, base: 2 | 10): number {
  let peak = 0;
  for (let i = Math.max(0, history.indexAt(fromNs) - 1); i < history.length && history.timeNs(i) <= toNs; i++) {
    for (const { value } of series) peak = Math.max(peak, value(history, i));
  }
  return niceCeiling(peak * 1.05, base);
}

/** The history's samples as steps: a figure holds until the next one is read, and no line crosses a gap. */
export function drawHistory(plot: Plot, theme: Theme, history: History, series: readonly Series[], peak: number, window: Window): void {
  const first = Math.max(0, history.indexAt(window.fromNs) - 1);
  let end = history.indexAt(window.toNs);
  if (end < history.length) end++;
  for (let i = first + 1; i < end; i++) {
    if (history.isAfterGap(i)) drawGap(plot, theme, history.timeNs(i - 1), history.timeNs(i), plot.width);
  }
  for (const { value, colour, filled } of series) {
    const y = (i: number): number => plot.floor - (plot.floor - plot.top) * Math.min(1, value(history, i) / peak);
    for (let from = first; from < end; ) {
      let to = from + 1;
      while (to < end && !history.isAfterGap(to)) to++;
      trace(plot, colour, filled, from, to, (i) => plot.x(history.timeNs(i)), y);
      from = to;
    }
  }
}

function trace(
  { context, floor }: Plot,
  colour: string,
  filled: boolean,
  from: number,
  to: number,
  x: (i: number) => number,
  y: (i: number) => number,
): void {
  const path = new Path2D();
  path.moveTo(x(from), y(from));
  for (let i = from + 1; i < to; i++) {
    path.lineTo(x(i), y(i - 1));
    path.lineTo(x(i), y(i));
  }
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  if (filled) {
    const area = new Path2D(path);
    area.lineTo(x(to - 1), floor);
    area.lineTo(x(from), floor);
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

/** The last minute of a history, or what there is of it where it is shorter than that by far. */
export function lastMinute(nowNs: number): Window {
  return { fromNs: nowNs - 60e9, toNs: nowNs };
}

