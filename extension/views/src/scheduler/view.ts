// The scheduler instrument: key figures, tasks by phase, lanes in time, launches per second.

import { PHASES, Phase, REASONS, type Store, type Task, format } from '@pygpukit/core';
import { el, setData, setText, syncRows } from '../dom.js';
import { Figures, section } from '../figures.js';
import { Pane } from '../pane.js';
import { Panel } from '../panel.js';
import { TIMELINE_HEIGHT, drawTimeline } from '../timeline.js';
import { Gantt } from './gantt.js';
import { ranNs, waitedNs } from './lanes.js';

const TABLE_ROWS = 200;
const ENDINGS: readonly [number, string][] = [
  [Phase.Failed, 'failed'],
  [Phase.Rejected, 'rejected'],
  [Phase.Cancelled, 'cancelled'],
  [Phase.Expired, 'expired'],
];

export class SchedulerView extends Panel {
  private readonly figures = new Figures(['Running', 'Queued', 'Succeeded', 'Launches']);
  private readonly phases = el('ul', 'gk-phases');
  private readonly empty = el('p', 'gk-empty', 'No task yet. scheduler.submit(fn, ...) puts one here.');
  private readonly gantt: Gantt;
  private readonly timeline: Pane;
  private readonly tableBody = el('tbody');
  private readonly table: HTMLDetailsElement;

  constructor(host: HTMLElement, store: Store) {
    super(host, store, 'GPU scheduler');
    this.gantt = new Gantt(store, this.schedule);
    this.timeline = new Pane('Launches per second over the last minute', TIMELINE_HEIGHT, this.schedule);
    this.table = taskTable(this.tableBody);
    this.table.addEventListener('toggle', this.schedule);
    this.body.append(
      this.figures.element,
      section('Tasks', this.phases, this.empty, this.gantt.element),
      section('Launches per second, last minute', '', this.timeline.canvas),
      this.table,
    );
    this.onDispose(() => {
      this.gantt.dispose();
      this.timeline.dispose();
    });
  }

  protected override draw(): void {
    const { gauges, history, tasks } = this.store;
    if (!gauges) return;
    const launches = gauges.launches + gauges.hostLaunches;
    const counts = tasks.countByPhase();
    const known = (phase: number): number => counts[phase] ?? 0;
    const rate = history.launchRate(history.length - 1);
    this.figures.show([
      { value: format.count(gauges.runningTasks), note: notes([[known(Phase.Suspended), 'suspended']]) },
      { value: format.count(gauges.queuedTasks), note: notes([[known(Phase.Admitted), 'admitted']]) },
      { value: format.count(known(Phase.Succeeded)), note: notes(ENDINGS.map(([phase, word]) => [known(phase), word])) },
      { value: format.count(launches), note: `${format.rate(rate)} per second` },
    ]);
    this.drawPhases(counts);
    const all = tasks.all;
    this.empty.hidden = all.length > 0;
    this.gantt.element.hidden = all.length === 0;
    setData(this.element, { tasks: all.length });
    if (all.length > 0) this.gantt.draw(this.theme);
    this.timeline.draw((context, width, height) => {
      const line = { value: (h: typeof history, i: number) => h.launchRate(i), colour: this.theme.used, filled: true };
      drawTimeline(context, width, height, this.theme, history, [line], 10, (value) => `${format.rate(value)} /s`);
    });
    if (this.table.open) this.drawTable(all);
  }

  private drawPhases(counts: Uint32Array): void {
    const present = PHASES.map((name, phase) => ({ name, phase, count: counts[phase] ?? 0 })).filter(({ count }) => count > 0);
    const make = (): HTMLLIElement => el('li', '', el('i', 'gk-swatch'), el('span', 'gk-label'), el('span', 'gk-amount'));
    syncRows(this.phases, present, make, (item, { name, phase, count }) => {
      const [mark, label, amount] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      mark.style.background = `var(--gk-phase-${phase})`;
      setText(label, name.toLowerCase());
      setText(amount, format.count(count));
      setData(item, { phase: name, count });
    });
  }

  private drawTable(tasks: readonly Task[]): void {
    const { store } = this;
    const make = (): HTMLTableRowElement => el('tr', '', el('td'), el('td'), el('td'), el('td'), el('td'));
    syncRows(this.tableBody, tasks.slice(-TABLE_ROWS).reverse(), make, (row, task) => {
      const texts = [
        store.taskName(task),
        PHASES[task.phase] ?? '',
        REASONS.get(task.reason) ?? '\u2013',
        format.duration(waitedNs(task, store.timeNs)),
        format.duration(ranNs(task, store.timeNs)),
      ];
      texts.forEach((text, i) => setText(row.children[i] as HTMLElement, text));
    });
  }
}

/** "1 failed, 2 rejected": the counts that are not 0. */
function notes(parts: readonly [number, string][]): string {
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${format.count(count)} ${word}`)
    .join(', ');
}

function taskTable(body: HTMLElement): HTMLDetailsElement {
  const heads = ['Task', 'Phase', 'Reason', 'Waited', 'Ran'].map((text) => el('th', '', text));
  heads.forEach((head) => (head.scope = 'col'));
  const table = el('table', 'gk-table', el('thead', '', el('tr', '', ...heads)), body);
  return el('details', 'gk-details', el('summary', '', 'Tasks as a table'), el('div', 'gk-scroll', table));
}
