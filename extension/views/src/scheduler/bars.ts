// Painting of the Gantt: bars that tell phases apart by shape as well as by colour.

import { Phase, type Stretch, type Task, isTerminal } from '@pygpukit/core';
import { type Theme } from '../theme.js';
import { type Window } from '../timed.js';
import { type Row, beginNs, untilNs, visibleTasks } from './lanes.js';

export const ROW_HEIGHT = 32;
const BAR_INSET = 9;
const BAR_HEIGHT = ROW_HEIGHT - 2 * BAR_INSET;
/** Of a bar's height, what is left out while launches wait for their turn. */
const WAITING_PART = 0.4;
const MIN_BAR_PX = 1.5;
/** A narrower task is one bar: phases and the end mark in it could not be told apart. */
const MIN_DETAIL_PX = 6;
/** How far the mark of a task's end reaches past it. */
const END_MARK_PX = 8;
/** The dashes below a bar while blocks of its tenant are in host memory. */
const EVICTED_PX = 4;
const EVICTED_DASH_PX = [5, 2];

/** The colour of a task's tenant. */
export type TenantColour = (task: Task) => string;

/** While it runs, and while it is paused, a task has the colour of its tenant; all other phases have the phase's. */
function barColour(theme: Theme, task: Task, phase: number, tenant: TenantColour): string {
  return phase === Phase.Running || phase === Phase.Suspended ? tenant(task) : (theme.phases[phase] ?? theme.text);
}

/** A row's bars; of tasks too narrow to show their phases, one rectangle for all that touch and have one colour. */
export function drawRow(
  context: CanvasRenderingContext2D,
  width: number,
  theme: Theme,
  window: Window,
  row: Row,
  at: number,
  nowNs: number,
  chosen: Task | null,
  tenant: TenantColour,
): void {
  const scale = width / (window.toNs - window.fromNs);
  const x = (timeNs: number): number => (timeNs - window.fromNs) * scale;
  const top = at * ROW_HEIGHT + BAR_INSET;
  context.fillStyle = theme.well;
  context.fillRect(0, top, width, BAR_HEIGHT);
  const dense = new ColumnRun(context, top);
  for (const task of visibleTasks(row, { fromNs: window.fromNs - END_MARK_PX / scale, toNs: window.toNs })) {
    const left = x(beginNs(task));
    const right = x(untilNs(task, nowNs));
    if (right - left >= MIN_DETAIL_PX || task === chosen) {
      dense.flush();
      drawTask(context, width, theme, x, top, task, nowNs, tenant);
    } else if (task.phase === Phase.Succeeded) {
      dense.add(left, right, tenant(task), false);
    } else {
      dense.add(left, right, barColour(theme, task, task.phase, tenant), isTerminal(task.phase));
    }
  }
  dense.flush();
  if (chosen && row.tasks.includes(chosen)) {
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    const left = Math.max(1, x(beginNs(chosen)));
    const right = Math.min(width - 1, x(untilNs(chosen, nowNs)));
    if (right > 0 && left < width) context.strokeRect(left - 1, top - 2, Math.max(2, right - left) + 2, BAR_HEIGHT + 4);
  }
}

/** Whole pixel columns of one colour that touch, filled at once; in one column, a task that failed hides the others. */
class ColumnRun {
  private colour = '';
  private from = 0;
  private to = 0;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly top: number,
  ) {}

  add(left: number, right: number, colour: string, failed: boolean): void {
    let from = Math.floor(left);
    const to = Math.max(from + 1, Math.floor(right));
    if (this.colour && colour !== this.colour && from < this.to) {
      if (failed) this.to = Math.max(this.from, from);
      else from = this.to;
      if (from >= to) return;
    }
    if (colour !== this.colour || from > this.to) {
      this.flush();
      this.colour = colour;
      this.from = from;
    }
    this.to = Math.max(this.to, to);
  }

  flush(): void {
    if (this.colour && this.to > this.from) {
      this.context.fillStyle = this.colour;
      this.context.fillRect(this.from, this.top, this.to - this.from, BAR_HEIGHT);
    }
    this.colour = '';
    this.to = 0;
  }
}

function drawTask(
  context: CanvasRenderingContext2D,
  width: number,
  theme: Theme,
  x: (timeNs: number) => number,
  top: number,
  task: Task,
  nowNs: number,
  tenant: TenantColour,
): void {
  for (const { phase, startNs, endNs } of task.spans) {
    const left = Math.max(0, x(startNs));
    const right = Math.min(width, x(endNs || nowNs));
    if (left > width || right < 0) continue;
    context.fillStyle = barColour(theme, task, phase, tenant);
    if (isTerminal(phase)) drawEnd(context, Math.min(left + END_MARK_PX - 1, width - 5), top + BAR_HEIGHT / 2, phase);
    else drawSpan(context, theme, phase, left, top, Math.max(MIN_BAR_PX, right - left));
  }
  for (const { startNs, endNs } of task.waits) {
    const left = Math.max(0, x(startNs));
    const right = Math.min(width, x(endNs));
    if (right > left) thin(context, theme.surface, left, top, right - left);
  }
  for (const { startNs, endNs } of task.throttled) {
    const left = Math.max(0, x(startNs));
    const right = Math.min(width, x(endNs));
    if (right > left) hatch(context, theme.surface, left, top, right - left, BAR_HEIGHT);
  }
}

/** While its launches wait for their turn the bar is low. */
function thin(context: CanvasRenderingContext2D, surface: string, left: number, top: number, width: number): void {
  context.fillStyle = surface;
  context.fillRect(left, top, width, BAR_HEIGHT * WAITING_PART);
}

/** Waiting is thin, running is full, paused is hollow and hatched: the eye finds the work. */
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

/** Dashes below the bars: what is evicted are blocks, and the task may run all the same. */
export function drawEvicted(
  context: CanvasRenderingContext2D,
  width: number,
  theme: Theme,
  window: Window,
  stretches: readonly Stretch[],
  at: number,
  nowNs: number,
): void {
  const scale = width / (window.toNs - window.fromNs);
  const y = (at + 1) * ROW_HEIGHT - BAR_INSET + 1 + EVICTED_PX / 2;
  context.save();
  context.strokeStyle = theme.evicted;
  context.lineWidth = EVICTED_PX;
  context.setLineDash(EVICTED_DASH_PX);
  context.beginPath();
  for (const { startNs, endNs } of stretches) {
    const left = Math.max(0, (startNs - window.fromNs) * scale);
    const right = Math.min(width, ((endNs || nowNs) - window.fromNs) * scale);
    if (left > width || right < 0) continue;
    context.moveTo(left, y);
    context.lineTo(Math.max(right, left + MIN_BAR_PX), y);
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
