// The scheduler instrument: key figures, phases, Gantt, shares, latencies, launches, queue and admission log.

import { type Channel, PHASES, Phase, REASONS, type Store, type Task, format, isTerminal } from '@pygpukit/core';
import { Colours } from '../colours.js';
import { Controls } from '../controls.js';
import { el, setData, setText, syncRows } from '../dom.js';
import { Figures, section } from '../figures.js';
import { Panel } from '../panel.js';
import { Table } from '../table.js';
import { Timed, type Window, ceiling, drawHistory } from '../timed.js';
import { SchedulerChoice } from './choice.js';
import { Gantt, type Press } from './gantt.js';
import { evictedIn, evictedText, isPaused, pickWindow, ranNs, reasonText, stateText, waitedNs } from './lanes.js';
import { LatencyChart } from './latency.js';
import { PartitionChoice } from './partitions.js';
import { ShareChart } from './shares.js';

const ENDINGS: readonly [number, string][] = [
  [Phase.Failed, 'failed'],
  [Phase.Rejected, 'rejected'],
  [Phase.Cancelled, 'cancelled'],
  [Phase.Expired, 'expired'],
];
const LAUNCHES_HEIGHT = 84;

export class SchedulerView extends Panel {
  private readonly figures = new Figures(['Running', 'Queued', 'Succeeded', 'Launches']);
  private readonly phases = el('ul', 'gk-phases');
  private readonly empty = el('p', 'gk-empty', 'No task yet. scheduler.submit(fn, ...) puts one here.');
  private readonly unstarted = el('p', 'gk-empty');
  private readonly gantt: Gantt;
  private readonly choice: SchedulerChoice;
  private readonly colours: Colours;
  /** Names that got a colour in the draw that is under way. */
  private readonly named = new Set<string>();
  private readonly controls: Controls;
  private readonly chosen = el('p', 'gk-chosen');
  private readonly cancel: HTMLButtonElement;
  private readonly enablePriority: (enabled: boolean) => void;
  private readonly enableShare: (enabled: boolean) => void;
  private readonly shareOf = new PartitionChoice();
  private readonly shares: ShareChart;
  private readonly latency: LatencyChart;
  private readonly launches: Timed;
  private readonly table: Table;
  private readonly log: Table;
  private readonly partitions: Table;
  /** What pictures tasks alone, and what pictures contexts, too. */
  private readonly ofTasks: readonly HTMLElement[];
  private readonly sharing: HTMLElement;
  private ganttPending = 0;

  constructor(host: HTMLElement, store: Store, channel: Channel) {
    super(host, store, 'GPU scheduler');
    this.controls = new Controls(channel, 'Scheduler controls');
    this.colours = new Colours(this.theme.owners.length);
    this.choice = new SchedulerChoice(store, this.schedule);
    this.gantt = new Gantt(store, this.scheduleTimed, (task) => this.pausing(task), (task) => this.tenantColour(task), this.choice.element);
    this.shares = new ShareChart(store, this.colours, this.schedule);
    this.latency = new LatencyChart(store, this.schedule);
    this.launches = new Timed('Launches per second', LAUNCHES_HEIGHT, this.schedule);
    this.table = new Table('Tasks as a table', ['Task', 'Phase', 'QoS', 'Share', 'Priority', 'Reason', 'Waited', 'Ran', 'Evicted'], this.schedule);
    this.partitions = new Table('Partitions as a table', ['Partition', 'Keeps', 'Promised to its tasks'], this.schedule);
    this.log = new Table('Queue and admission log', ['At', 'Task', 'From', 'To', 'Reason'], this.schedule);
    this.controls.button('pause', 'Pause');
    this.controls.button('resume', 'Resume');
    const chosenTask = (): { task: string } | null => {
      const id = this.gantt.chosen?.facts?.id;
      return id ? { task: id } : null;
    };
    this.cancel = this.controls.button('cancel', 'Cancel the chosen task', chosenTask);
    this.enablePriority = this.controls.field('priority', 'Set priority', 'such as 5', (priority) => {
      const task = chosenTask();
      return task && { ...task, priority };
    });
    const share = (value: string): Record<string, string> | null => {
      const of = this.shareOf.partition ? { partition: this.shareOf.partition } : chosenTask();
      return of && { ...of, share: value };
    };
    this.enableShare = this.controls.field('share', 'Set share', 'such as 30 %', share, this.shareOf.element);
    this.shareOf.element.addEventListener('change', this.schedule);
    const latency = section('Latency', this.latency.aside, this.latency.element);
    this.ofTasks = [this.gantt.toolbar, this.gantt.element, latency];
    this.sharing = section('Share promised and achieved', this.shares.aside, this.shares.element);
    this.body.append(
      this.figures.element,
      section('Tasks', key(), this.phases, this.gantt.toolbar, this.empty, this.unstarted),
      this.gantt.element,
      this.controls.element,
      this.chosen,
      this.sharing,
      section('Launches per second', '', this.launches.element),
      latency,
      this.log.element,
      this.table.element,
    );
    this.onDispose(() => cancelAnimationFrame(this.ganttPending));
    this.onDispose(() => this.colours.keep(new Set()));
    for (const part of [this.gantt, this.shares, this.latency, this.launches]) this.onDispose(() => part.dispose());
  }

  /** Panning and zooming redraw the pictures that share the axis and nothing else. */
  private readonly scheduleTimed = (): void => {
    this.ganttPending ||= requestAnimationFrame(() => {
      this.ganttPending = 0;
      if (!this.element.isConnected || this.gantt.element.hidden) return;
      this.drawTimed(this.choice.tasks());
      this.drawChosen();
    });
  };

  /** All that lies over one stretch of time. */
  private drawTimed(tasks: readonly Task[]): void {
    const { history, timeNs } = this.store;
    this.named.clear();
    if (!this.gantt.element.hidden) this.gantt.draw(this.theme, tasks);
    const window: Window = this.gantt.element.hidden ? pickWindow([], timeNs, history.launchedNs) : this.gantt.window;
    if (!this.sharing.hidden) for (const name of this.shares.draw(this.theme, window, tasks, this.gantt.follows)) this.named.add(name);
    this.colours.keep(this.named);
    const line = { value: (h: typeof history, i: number) => h.launchRate(i), colour: this.theme.muted, filled: true };
    const peak = ceiling(history, [line], window, 10);
    const marks = [peak, peak / 2].map((value) => `${format.rate(value).replace(/\.0$/, '')} /s`) as [string, string];
    this.launches.draw(this.theme, window, timeNs, [...marks, '0'], (plot) => drawHistory(plot, this.theme, history, [line], peak, window));
    setData(this.element, { fromNs: Math.round(window.fromNs), toNs: Math.round(window.toNs) });
  }

  private tenantColour(task: Task): string {
    const name = this.store.taskName(task);
    this.named.add(name);
    return this.theme.owners[this.colours.of(name)] ?? this.theme.text;
  }

  protected override draw(): void {
    const { gauges, history, tasks } = this.store;
    if (!gauges) return;
    const launches = gauges.launches + gauges.hostLaunches;
    const shown = this.choice.tasks();
    const counts = tasks.countByPhase(shown);
    const known = (phase: number): number => counts[phase] ?? 0;
    const rate = history.launchRate(history.length - 1);
    this.figures.show([
      { value: format.count(gauges.runningTasks), note: notes([[known(Phase.Suspended), 'paused']]) },
      { value: format.count(gauges.queuedTasks), note: notes([[known(Phase.Admitted), 'admitted']]) },
      { value: format.count(known(Phase.Succeeded)), note: notes(ENDINGS.map(([phase, word]) => [known(phase), word])) },
      { value: format.count(launches), note: `${format.rate(rate)} per second` },
    ]);
    this.drawPhases(counts);
    const all = tasks.all;
    const contexts = this.store.contexts.length;
    this.empty.hidden = all.length + contexts > 0;
    const waiting = unstartedText(shown);
    this.unstarted.hidden = waiting === '';
    setText(this.unstarted, waiting);
    for (const part of this.ofTasks) part.hidden = all.length === 0;
    this.sharing.hidden = all.length + contexts === 0;
    setData(this.element, { tasks: all.length, shown: shown.length, contexts });
    this.drawTimed(shown);
    if (all.length > 0) this.latency.draw(this.theme, shown);
    this.drawChosen();
    this.drawTables(shown);
  }

  private drawChosen(): void {
    const task = this.gantt.chosen;
    const actable = Boolean(task?.facts?.id) && !isTerminal(task?.phase ?? 0);
    this.cancel.disabled = !actable;
    this.shareOf.show(this.store.partitions);
    this.enablePriority(actable);
    this.enableShare(actable || this.shareOf.partition !== '');
    this.chosen.hidden = this.controls.element.hidden;
    const how = 'Choose a task in the picture, with a click or with arrow keys and Enter, to act on it.';
    setText(this.chosen, task ? `Chosen: ${this.store.taskName(task)}, ${stateText(task, this.store.timeNs)}${promise(task)}` : how);
  }

  /** What the button in a task's row does; null where there is none. */
  private pausing(task: Task): Press | null {
    const [action, verb] = isPaused(task) ? ['resume_task', 'Resume'] : ['pause_task', 'Pause'];
    const id = task.facts?.id;
    if (!id || isTerminal(task.phase) || !this.controls.has(action)) return null;
    const text = `${verb} ${this.store.taskName(task)}`;
    return { action, text, press: () => this.controls.press(action, text, { task: id }) };
  }

  private drawPhases(counts: Uint32Array): void {
    const present = PHASES.map((name, phase) => ({ name, phase, count: counts[phase] ?? 0 })).filter(({ count }) => count > 0);
    const make = (): HTMLLIElement => el('li', '', el('i', 'gk-swatch'), el('span', 'gk-label'), el('span', 'gk-amount'));
    syncRows(this.phases, present, make, (item, { name, phase, count }) => {
      const [mark, label, amount] = item.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      // Who runs has the colour of its tenant.
      mark.className = phase === Phase.Running || phase === Phase.Suspended ? `gk-swatch gk-swatch-${phase === Phase.Running ? 'running' : 'paused'}` : 'gk-swatch';
      mark.style.background = mark.className === 'gk-swatch' ? `var(--gk-phase-${phase})` : '';
      setText(label, phase === Phase.Suspended ? 'paused' : name.toLowerCase());
      setText(amount, format.count(count));
      setData(item, { phase: name, count });
    });
  }

  private drawTables(tasks: readonly Task[]): void {
    const { store } = this;
    const dash = '\u2013';
    const reason = (code: number): string => REASONS.get(code) ?? dash;
    if (store.partitions.length === 0) this.partitions.element.remove();
    else if (!this.partitions.element.isConnected) this.body.append(this.partitions.element);
    this.partitions.show(
      () => store.partitions,
      ({ id, sharePpm, usedPpm }) => [id, promisedText(sharePpm), promisedText(usedPpm)],
    );
    this.table.show(
      () => [...tasks].reverse(),
      (task) => [
        store.taskName(task),
        PHASES[task.phase] ?? '',
        task.facts?.policy ?? dash,
        task.facts?.sharePpm ? promisedText(task.facts.sharePpm) : dash,
        task.facts ? String(task.facts.priority ?? 0) : dash,
        [reasonText(task) || dash, task.facts?.detail].filter(Boolean).join(': '),
        format.duration(waitedNs(task, store.timeNs)),
        format.duration(ranNs(task, store.timeNs)),
        evictedText(evictedIn(store, task), store.timeNs) || dash,
      ],
    );
    this.log.show(
      () => [...store.transitions.all].reverse(),
      ({ timeNs, task, from, to, reason: code }) => {
        const known = store.tasks.get(task);
        const name = known ? store.taskName(known) : `task ${task}`;
        return [`${(timeNs / 1e9).toFixed(3)} s`, name, PHASES[from] ?? '', PHASES[to] ?? '', reason(code)];
      },
    );
  }
}

/** "1 failed, 2 rejected": the counts that are not 0. */
function notes(parts: readonly [number, string][]): string {
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${format.count(count)} ${word}`)
    .join(', ');
}

/** Which schedulers of these tasks nobody has started, and what starts them; "" where there is none. */
function unstartedText(tasks: readonly Task[]): string {
  const names = new Set(tasks.filter(({ phase, facts }) => facts?.unstarted && !isTerminal(phase)).map(({ facts }) => facts?.scheduler || 'the scheduler'));
  return names.size > 0 ? `Not started: ${[...names].join(', ')}. start() or result() runs its tasks.` : '';
}

/** ", promised 30 %, priority 5": what its controls change. */
function promise({ facts }: Task): string {
  if (!facts) return '';
  return `, promised ${promisedText(facts.sharePpm)}, priority ${facts.priority ?? 0}`;
}

function promisedText(sharePpm = 0): string {
  return sharePpm > 0 ? format.percent(sharePpm, 1e6) : 'no share';
}

/** What the shapes in a lane mean; who runs has the colour of its tenant, as in the pictures below. */
function key(): HTMLElement {
  const mark = (name: string, text: string): Node => el('span', 'gk-key-part', el('i', `gk-swatch gk-swatch-${name}`), text);
  return el('span', 'gk-key', mark('running', 'running, by tenant'), mark('turn', 'waits for its turn'), mark('throttled', 'held back by its limit'), mark('paused', 'paused'), mark('evicted', 'evicted'));
}
