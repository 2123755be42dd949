// The Gantt: rows of bars in time, with zoom and pan by pointer, wheel, keys and buttons. Names and states are real text.

import { type Store, type Task } from '@pygpukit/core';
import { el, setData, setLabel, setText, syncRows, withModifier } from '../dom.js';
import { Pane } from '../pane.js';
import { type Theme } from '../theme.js';
import { AXIS_HEIGHT, type Window, drawAxis } from '../timed.js';
import { ROW_HEIGHT, type TenantColour, drawEvicted, drawRow } from './bars.js';
import { GROUPINGS, type Grouping, type Row, beginNs, evictedInRow, extent, layoutRows, isPaused, pickWindow, rowText, taskLines, untilNs, visibleTasks } from './lanes.js';

const VISIBLE_ROWS = 8;
const ZOOM_STEP = 1.5;
const MIN_SPAN_NS = 1e4;
const PAN_PART = 0.2;
/** A press that moves less than this is a click. */
const CLICK_PX = 4;

/** What a button in a task's row does, and what it is called. */
export interface Press {
  readonly action: string;
  readonly text: string;
  press(): void;
}

export class Gantt {
  readonly element: HTMLElement;
  /** What is looked at how: set above the picture. */
  readonly toolbar: HTMLElement;
  /** The task that was clicked or chosen by key. */
  chosen: Task | null = null;
  private readonly names = el('ul', 'gk-lane-names');
  private readonly states = el('ul', 'gk-lane-states');
  private readonly buttons = el('ul', 'gk-lane-buttons');
  private readonly tip = el('div', 'gk-tip');
  private readonly place = el('span', 'gk-gantt-place');
  private readonly pane: Pane;
  private rows: Row[] = [];
  private laidOut = '';
  private grouping: Grouping = 'task';
  /** What the user looks at; null = what is newest. */
  private fixed: Window | null = null;
  private shown: Window = { fromNs: 0, toNs: 1 };
  private tasks: readonly Task[] = [];
  /** First visible row; null = the newest rows. */
  private firstRow: number | null = null;
  private hovered: Task | null = null;
  private tipWidthPx = 0;
  private drag: { x: number; y: number; window: Window; row: number; moved: boolean } | null = null;

  constructor(
    private readonly store: Store,
    private readonly redraw: () => void,
    private readonly pressOf: (task: Task) => Press | null,
    private readonly tenant: TenantColour,
    ...choices: HTMLElement[]
  ) {
    this.pane = new Pane('Task phases over time. Arrow keys move, plus and minus zoom, Enter chooses.', ROW_HEIGHT + AXIS_HEIGHT, redraw);
    this.tip.setAttribute('role', 'status');
    this.tip.hidden = true;
    this.listen(this.pane.canvas);
    this.keepRowsWhileFocused();
    const picture = el('div', 'gk-gantt-picture', this.pane.canvas, this.tip);
    this.toolbar = this.makeToolbar(choices);
    this.element = el('div', 'gk-timed gk-gantt', el('div', 'gk-lanes', this.names, this.states), picture, this.buttons);
  }

  /** The stretch of time that is shown, as of the last draw(). */
  get window(): Window {
    return this.shown;
  }

  /** Whether it ends now, or with the last that happened; nobody chose another stretch. */
  get follows(): boolean {
    return this.fixed === null;
  }

  draw(theme: Theme, tasks: readonly Task[]): void {
    const { store } = this;
    this.layout(tasks);
    const visible = Math.min(VISIBLE_ROWS, this.rows.length);
    const first = this.first;
    const rows = this.rows.slice(first, first + visible);
    const followed = this.firstRow === null ? tasks : rows.flatMap((row) => row.tasks);
    this.shown = this.fixed ?? pickWindow(followed, store.timeNs, store.history.launchedNs);
    this.drawLabels(rows);
    this.pane.setHeight(visible * ROW_HEIGHT + AXIS_HEIGHT);
    this.pane.draw((context, width, height) => {
      drawAxis(context, width, height, theme, this.shown, store.timeNs);
      rows.forEach((row, at) => {
        drawRow(context, width, theme, this.shown, row, at, store.timeNs, this.chosen, this.tenant);
        drawEvicted(context, width, theme, this.shown, evictedInRow(store, row, this.grouping), at, store.timeNs);
      });
    });
    this.showTip();
    const spanNs = this.shown.toNs - this.shown.fromNs;
    setData(this.element, { rows: this.rows.length, first, fromNs: Math.round(this.shown.fromNs), spanNs: Math.round(spanNs), grouping: this.grouping });
    setText(this.place, this.rows.length > visible ? `rows ${first + 1} to ${first + visible} of ${this.rows.length}` : '');
  }

  dispose(): void {
    this.pane.dispose();
  }

  /** Zooms about a place, 0 (left) to 1 (right). */
  zoom(factor: number, at = 0.5): void {
    const { fromNs, toNs } = this.shown;
    const span = Math.max(MIN_SPAN_NS, (toNs - fromNs) / factor);
    const pivot = fromNs + at * (toNs - fromNs);
    this.look({ fromNs: pivot - at * span, toNs: pivot + (1 - at) * span });
  }

  pan(part: number): void {
    const { fromNs, toNs } = this.shown;
    const by = part * (toNs - fromNs);
    this.look({ fromNs: fromNs + by, toNs: toNs + by });
  }

  private get first(): number {
    const last = Math.max(0, this.rows.length - VISIBLE_ROWS);
    return Math.min(this.firstRow ?? last, last);
  }

  private layout(tasks: readonly Task[]): void {
    const key = `${this.store.tasks.version} ${this.grouping}`;
    if (key === this.laidOut && tasks === this.tasks) return;
    this.laidOut = key;
    this.tasks = tasks;
    this.rows = layoutRows(this.store, this.grouping, tasks);
    // An object of a forgotten task, or one that a snapshot replaced, is not drawn any more.
    const { chosen } = this;
    if (chosen && this.store.tasks.get(chosen.number) !== chosen) this.chosen = this.store.tasks.get(chosen.number) ?? null;
  }

  private drawLabels(rows: readonly Row[]): void {
    const { store } = this;
    const makeName = (): HTMLLIElement => el('li');
    syncRows(this.names, rows, makeName, (item, { label }) => {
      setLabel(item, label);
    });
    syncRows(this.states, rows, makeName, (item, row) => {
      const task = row.tasks.length === 1 ? row.tasks[0] : undefined;
      setLabel(item, rowText(store, row, this.grouping));
      setData(item, { phase: task?.phase ?? '', paused: String(task !== undefined && isPaused(task)) });
    });
    syncRows(this.buttons, rows, makeButton, (item, { tasks }) => {
      this.drawButton(item.firstElementChild as HTMLButtonElement, tasks.length === 1 ? tasks[0] : undefined);
    });
  }

  private drawButton(button: HTMLButtonElement, task: Task | undefined): void {
    const press = task ? this.pressOf(task) : null;
    if (!press && button.matches(':focus')) button.blur(); // or nobody tells that the rows may move again
    button.hidden = !press;
    button.onclick = press && (() => press.press());
    if (!press || button.title === press.text) return;
    button.title = press.text;
    button.setAttribute('aria-label', press.text);
    setData(button, { action: press.action });
  }

  /** Rows stay where they are while a button among them has the focus, so that a press is for the task that was meant. */
  private keepRowsWhileFocused(): void {
    let follows = false;
    this.buttons.addEventListener('focusin', () => {
      follows ||= this.firstRow === null;
      this.firstRow ??= this.first;
    });
    this.buttons.addEventListener('focusout', () => {
      if (follows) this.firstRow = null;
      follows = false;
      this.redraw();
    });
  }

  private makeToolbar(choices: readonly HTMLElement[]): HTMLElement {
    const choice = el('select', 'gk-input', ...GROUPINGS.map((name) => el('option', '', name)));
    choice.setAttribute('aria-label', 'One lane for each');
    choice.addEventListener('change', () => {
      this.grouping = GROUPINGS[choice.selectedIndex] ?? 'task';
      this.firstRow = null;
      this.redraw();
    });
    const button = (text: string, title: string, press: () => void): HTMLElement => {
      const control = el('button', 'gk-button', text);
      Object.assign(control, { type: 'button', title });
      control.setAttribute('aria-label', title);
      control.addEventListener('click', press);
      return control;
    };
    const fit = (): void => this.look(extent(this.tasks, this.store.timeNs));
    const live = (): void => {
      this.firstRow = null;
      this.look(null);
    };
    return el(
      'div',
      'gk-controls',
      el('label', 'gk-choice', 'lanes by ', choice),
      ...choices,
      button('+', 'Zoom in', () => this.zoom(ZOOM_STEP)),
      button('\u2212', 'Zoom out', () => this.zoom(1 / ZOOM_STEP)),
      button('All', 'Show all tasks', fit),
      button('Live', 'Live: follow the newest tasks', live),
      this.place,
    );
  }

  private look(window: Window | null): void {
    this.fixed = window;
    this.redraw();
  }

  private scroll(rows: number): void {
    this.firstRow = Math.max(0, this.first + rows);
    this.redraw();
  }

  private listen(canvas: HTMLCanvasElement): void {
    canvas.tabIndex = 0;
    canvas.addEventListener('wheel', (event) => {
      // A bare wheel scrolls the page, unless the picture has the focus.
      if (event.ctrlKey || event.shiftKey) this.zoom(Math.exp(-(event.deltaY || event.deltaX) / 300), event.offsetX / Math.max(1, this.pane.widthPx));
      else if (document.activeElement === canvas) this.scroll(Math.sign(event.deltaY) * 2);
      else return;
      event.preventDefault();
    });
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = { x: event.offsetX, y: event.offsetY, window: this.shown, row: this.first, moved: false };
    });
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => {
      if (this.drag && !this.drag.moved) this.choose(this.taskAt(event.offsetX, event.offsetY));
    });
    // Also where the browser takes the pointer for a gesture of its own.
    canvas.addEventListener('lostpointercapture', () => (this.drag = null));
    canvas.addEventListener('pointerleave', () => this.hover(null));
    canvas.addEventListener('blur', () => this.hover(null));
    canvas.addEventListener('keydown', (event) => {
      const act = this.keys[event.key];
      if (!act || withModifier(event)) return;
      event.preventDefault();
      act();
    });
  }

  private readonly keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => this.pan(-PAN_PART),
    ArrowRight: () => this.pan(PAN_PART),
    ArrowDown: () => this.step(1),
    ArrowUp: () => this.step(-1),
    PageDown: () => this.scroll(VISIBLE_ROWS),
    PageUp: () => this.scroll(-VISIBLE_ROWS),
    '+': () => this.zoom(ZOOM_STEP),
    '=': () => this.zoom(ZOOM_STEP),
    '-': () => this.zoom(1 / ZOOM_STEP),
    Enter: () => this.choose(this.hovered),
    Escape: () => {
      this.hover(null);
      this.choose(null);
    },
  };

  private move(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      this.hover(this.taskAt(event.offsetX, event.offsetY));
      return;
    }
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    drag.moved ||= Math.hypot(dx, dy) > CLICK_PX;
    if (!drag.moved) return;
    const by = (-dx / Math.max(1, this.pane.widthPx)) * (drag.window.toNs - drag.window.fromNs);
    this.firstRow = Math.max(0, drag.row - Math.round(dy / ROW_HEIGHT));
    this.look({ fromNs: drag.window.fromNs + by, toNs: drag.window.toNs + by });
  }

  /** Reads the next task, by number, and brings its row into view. */
  private step(by: number): void {
    const order = this.rows.flatMap(({ tasks }, row) => tasks.map((task) => ({ task, row })));
    const at = order.findIndex(({ task }) => task === this.hovered);
    const next = order[at < 0 ? order.findIndex(({ row }) => row >= this.first) : Math.min(Math.max(at + by, 0), order.length - 1)];
    if (!next) return;
    if (next.row < this.first || next.row >= this.first + VISIBLE_ROWS) this.firstRow = next.row;
    this.hover(next.task);
  }

  private taskAt(x: number, y: number): Task | null {
    const row = this.rows[this.first + Math.floor(y / ROW_HEIGHT)];
    if (!row || y >= VISIBLE_ROWS * ROW_HEIGHT) return null;
    if (this.grouping === 'task') return row.tasks[0] ?? null;
    const scale = (this.shown.toNs - this.shown.fromNs) / Math.max(1, this.pane.widthPx);
    const near = { fromNs: this.shown.fromNs + (x - 2) * scale, toNs: this.shown.fromNs + (x + 2) * scale };
    const hit = visibleTasks(row, near).findLast((task) => untilNs(task, this.store.timeNs) >= near.fromNs);
    if (hit) return hit;
    // What a task left behind may be evicted after its end.
    const left = evictedInRow(this.store, row, this.grouping).some(({ startNs, endNs }) => startNs <= near.toNs && (endNs || this.store.timeNs) >= near.fromNs);
    return (left && row.tasks.findLast((task) => beginNs(task) <= near.toNs)) || null;
  }

  private hover(task: Task | null): void {
    if (task === this.hovered) return;
    this.hovered = task;
    this.redraw();
  }

  private choose(task: Task | null): void {
    this.chosen = task;
    this.redraw();
  }

  private showTip(): void {
    const task = this.hovered;
    const index = task ? this.rows.findIndex(({ tasks }) => tasks.includes(task)) : -1;
    const [row, lane] = [index - this.first, this.rows[index]];
    this.tip.hidden = !lane || row < 0 || row >= VISIBLE_ROWS;
    if (!task || !lane || this.tip.hidden) return;
    const text = taskLines(this.store, task, evictedInRow(this.store, lane, this.grouping)).join('\n');
    if (this.tip.textContent !== text) {
      this.tip.textContent = text;
      // Asked for only here: it makes the browser lay out the page.
      this.tipWidthPx = this.tip.offsetWidth;
    }
    const start = (beginNs(task) - this.shown.fromNs) / (this.shown.toNs - this.shown.fromNs);
    const half = this.tipWidthPx / 2;
    const width = this.pane.widthPx;
    this.tip.style.left = `${Math.min(Math.max(start * width + half, half), Math.max(half, width - half))}px`;
    this.tip.style.top = `${(row + 1) * ROW_HEIGHT + 2}px`;
  }
}

/** Room for a button. */
function makeButton(): HTMLLIElement {
  const button = el('button', 'gk-row-button');
  button.type = 'button';
  button.hidden = true;
  return el('li', '', button);
}
