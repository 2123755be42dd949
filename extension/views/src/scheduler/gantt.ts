// The Gantt: one lane a task, its phases as bars in time; names and states beside it are real text.

import { Phase, type Store, type Task, isTerminal } from '@pygpukit/core';
import { el, setData, setText, syncRows } from '../dom.js';
import { Pane } from '../pane.js';
import { type Theme } from '../theme.js';
import { type Window, pickLanes, pickWindow, stateText } from './lanes.js';

const LANES = 10;
const LANE_HEIGHT = 26;
const AXIS_HEIGHT = 18;
const BAR_INSET = 6;

export class Gantt {
  readonly element: HTMLElement;
  private readonly names = el('ul', 'gk-lane-names');
  private readonly states = el('ul', 'gk-lane-states');
  private readonly pane: Pane;

  constructor(
    private readonly store: Store,
    redraw: () => void,
  ) {
    this.pane = new Pane('Task phases over time', LANE_HEIGHT + AXIS_HEIGHT, redraw);
    this.element = el('div', 'gk-gantt', this.names, this.pane.canvas, this.states);
  }

  draw(theme: Theme): void {
    const { store } = this;
    const lanes = pickLanes(store.tasks.all, LANES);
    const window = pickWindow(lanes, store.timeNs);
    const makeRow = (): HTMLLIElement => el('li');
    syncRows(this.names, lanes, makeRow, (row, task) => {
      const name = store.taskName(task);
      setText(row, name);
      row.title = name;
    });
    syncRows(this.states, lanes, makeRow, (row, task) => {
      const text = stateText(task, store.timeNs);
      setText(row, text);
      row.title = text;
      setData(row, { phase: task.phase });
    });
    this.pane.setHeight(lanes.length * LANE_HEIGHT + AXIS_HEIGHT);
    this.pane.draw((context, width, height) => {
      drawAxis(context, width, height, theme, window);
      lanes.forEach((task, lane) => drawLane(context, width, theme, window, task, lane, store.timeNs));
    });
  }

  dispose(): void {
    this.pane.dispose();
  }
}

function drawLane(
  context: CanvasRenderingContext2D,
  width: number,
  theme: Theme,
  window: Window,
  task: Task,
  lane: number,
  nowNs: number,
): void {
  const x = (timeNs: number): number => ((timeNs - window.fromNs) / (window.toNs - window.fromNs)) * width;
  const top = lane * LANE_HEIGHT + BAR_INSET;
  const height = LANE_HEIGHT - 2 * BAR_INSET;
  context.fillStyle = theme.well;
  context.beginPath();
  context.roundRect(0, top, width, height, 3);
  context.fill();
  for (const { phase, startNs, endNs } of task.spans) {
    context.fillStyle = theme.phases[phase] ?? theme.text;
    const left = Math.max(0, x(startNs));
    if (isTerminal(phase)) {
      drawEnd(context, Math.min(left + 7, width - 5), top + height / 2, phase);
      continue;
    }
    const right = Math.min(width, x(endNs || nowNs));
    if (right <= 0) continue;
    // Waiting is thin, running is full: the eye finds the work.
    const thin = phase !== Phase.Running;
    context.beginPath();
    context.roundRect(left, top + (thin ? 4 : 0), Math.max(1.5, right - left), height - (thin ? 8 : 0), thin ? 2 : 3);
    context.fill();
  }
}

/** How a task ended: a round point when it succeeded, a square one when it did not. */
function drawEnd(context: CanvasRenderingContext2D, x: number, y: number, phase: number): void {
  context.beginPath();
  if (phase === Phase.Succeeded) context.arc(x, y, 3.5, 0, 2 * Math.PI);
  else context.rect(x - 3.5, y - 3.5, 7, 7);
  context.fill();
}

function drawAxis(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme, window: Window): void {
  const seconds = (window.toNs - window.fromNs) / 1e9;
  const step = [0.5, 1, 2, 5, 10, 20].find((size) => seconds / size <= 6) ?? 20;
  context.font = `10px ${theme.font}`;
  context.fillStyle = theme.muted;
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.textBaseline = 'bottom';
  for (let at = 0; at <= seconds; at += step) {
    const x = Math.round((at / seconds) * width) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS_HEIGHT + 2);
    context.stroke();
    context.textAlign = at === 0 ? 'left' : 'center';
    if (x < width - 20) context.fillText(`${at} s`, x, height);
  }
}
