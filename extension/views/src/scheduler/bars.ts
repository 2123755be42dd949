// Painting of the Gantt: bars that tell phases apart by shape as well as by colour, and the time axis.

import { Phase, type Task, format, isTerminal } from '@pygpukit/core';
import { type Theme } from '../theme.js';
import { type Row, type Window } from './lanes.js';

export const ROW_HEIGHT = 26;
export const AXIS_HEIGHT = 18;
const BAR_INSET = 6;
const BAR_HEIGHT = ROW_HEIGHT - 2 * BAR_INSET;
const MIN_BAR_PX = 1.5;
/** A task that is narrower is one bar: the phases in it could not be told apart. */
const MIN_DETAIL_PX = 2;
const STEPS_PER_AXIS = 6;
const POLICIES = ['Guaranteed', 'Burstable', 'BestEffort'];

/** A running bar has the colour of its QoS class; all other phases have the phase's. */
export function barColour(theme: Theme, task: Task, phase: number): string {
  const policy = POLICIES.indexOf(task.facts?.policy ?? '');
  const own = phase === Phase.Running && policy >= 0 ? theme.policies[policy] : theme.phases[phase];
  return own ?? theme.text;
}

export function drawRow(
  context: CanvasRenderingContext2D,
  width: number,
  theme: Theme,
  window: Window,
  { tasks }: Row,
  at: number,
  nowNs: number,
  chosen: Task | null,
): void {
  const scale = width / (window.toNs - window.fromNs);
  const top = at * ROW_HEIGHT + BAR_INSET;
  context.fillStyle = theme.well;
  context.fillRect(0, top, width, BAR_HEIGHT);
  // Bars that would fall into the pixel column that the last one filled are left out: the picture is the same.
  let filledTo = -1;
  for (const task of tasks) {
    const { spans } = task;
    if (((spans.at(-1)?.endNs || nowNs) - window.fromNs) * scale < -8) continue;
    const start = ((spans[0]?.startNs ?? 0) - window.fromNs) * scale;
    if (start > width) continue;
    if (((spans.at(-1)?.endNs || nowNs) - window.fromNs) * scale - start < MIN_DETAIL_PX && task !== chosen) {
      const column = Math.floor(start);
      if (column < filledTo) continue;
      context.fillStyle = barColour(theme, task, task.phase === Phase.Succeeded ? Phase.Running : task.phase);
      context.fillRect(column, top, 1, BAR_HEIGHT);
      filledTo = column + 1;
      continue;
    }
    for (const { phase, startNs, endNs } of spans) {
      const left = Math.max(0, (startNs - window.fromNs) * scale);
      const right = Math.min(width, ((endNs || nowNs) - window.fromNs) * scale);
      if (left > width || right < 0) continue;
      context.fillStyle = barColour(theme, task, phase);
      if (isTerminal(phase)) {
        if (left < filledTo) continue;
        drawEnd(context, Math.min(left + 7, width - 5), top + BAR_HEIGHT / 2, phase);
        filledTo = left + 1;
      } else if (right > filledTo) {
        drawSpan(context, theme, phase, left, top, Math.max(MIN_BAR_PX, right - left));
        filledTo = Math.floor(right);
      }
    }
    for (const { startNs, endNs } of task.throttled) {
      const left = Math.max(0, (startNs - window.fromNs) * scale);
      const right = Math.min(width, (endNs - window.fromNs) * scale);
      if (right > left) hatch(context, theme.surface, left, top, right - left, BAR_HEIGHT);
    }
    if (task === chosen) {
      context.strokeStyle = theme.text;
      context.lineWidth = 1.5;
      const left = Math.max(1, ((spans[0]?.startNs ?? 0) - window.fromNs) * scale);
      const right = Math.min(width - 1, ((spans.at(-1)?.endNs || nowNs) - window.fromNs) * scale);
      if (right > 0 && left < width) context.strokeRect(left - 1, top - 2, Math.max(2, right - left) + 2, BAR_HEIGHT + 4);
    }
  }
}

/** Waiting is thin, running is full, evicted is hollow and hatched: the eye finds the work. */
function drawSpan(context: CanvasRenderingContext2D, theme: Theme, phase: number, left: number, top: number, width: number): void {
  if (phase === Phase.Running) {
    context.fillRect(left, top, width, BAR_HEIGHT);
  } else if (phase === Phase.Suspended) {
    context.globalAlpha = 0.55;
    context.fillRect(left, top + 2, width, BAR_HEIGHT - 4);
    context.globalAlpha = 1;
    hatch(context, theme.surface, left, top + 2, width, BAR_HEIGHT - 4);
  } else {
    context.fillRect(left, top + 5, width, BAR_HEIGHT - 10);
  }
}

function hatch(context: CanvasRenderingContext2D, colour: string, left: number, top: number, width: number, height: number): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let x = left - height; x < left + width; x += 5) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

/** How a task ended: a round point when it succeeded, a square one when it did not. */
function drawEnd(context: CanvasRenderingContext2D, x: number, y: number, phase: number): void {
  context.beginPath();
  if (phase === Phase.Succeeded) context.arc(x, y, 3.5, 0, 2 * Math.PI);
  else context.rect(x - 3.5, y - 3.5, 7, 7);
  context.fill();
}

/** The next 1, 2 or 5 times a power of ten above a step. */
function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((part) => part * power >= value) ?? 10) * power;
}

export function drawAxis(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme, window: Window): void {
  const spanNs = window.toNs - window.fromNs;
  const step = niceStep(spanNs / STEPS_PER_AXIS);
  context.font = `10px ${theme.font}`;
  context.fillStyle = theme.muted;
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.textBaseline = 'bottom';
  for (let at = 0; at <= spanNs; at += step) {
    const x = Math.round((at / spanNs) * width) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS_HEIGHT + 2);
    context.stroke();
    context.textAlign = at === 0 ? 'left' : 'center';
    if (x < width - 20) context.fillText(at === 0 ? '0 s' : format.duration(at).replace('.0 ', ' '), x, height);
  }
}
