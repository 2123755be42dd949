// What both instruments share: frame, heading, live light, theme, and drawing once a frame with the newest data.

import { type Store } from '@pygpukit/core';
import { el, setData, setText, withModifier } from './dom.js';
import { type Theme, readTheme, watchTheme } from './theme.js';

/** Without a frame for this long the light goes from live to paused. */
const STALE_MS = 2000;
const CHECK_MS = 500;

const STATES = { waiting: 'Waiting', live: 'Live', paused: 'Not updating', replay: 'Replay', over: 'Replay ended', ended: 'Ended', fault: 'Stopped' } as const;
type State = keyof typeof STATES;
const SENTENCES: Readonly<Partial<Record<State, string>>> = {
  waiting: 'Waiting for the kernel. If this stays, run the cell that made this view again.',
  ended: 'The kernel of this view has ended. Run the cell that made it again for a live view.',
};

export abstract class Panel {
  readonly element: HTMLElement;
  protected readonly body = el('div', 'gk-body');
  protected theme: Theme;
  private themeIsRead = false;
  private readonly device = el('span', 'gk-device');
  private readonly light = el('span', 'gk-light');
  private readonly sequence = el('span', 'gk-seq');
  private readonly message = el('p', 'gk-message');
  private readonly ending: (() => void)[] = [];
  private pending = 0;
  private heardAt = 0;
  private shownSeq = 0;

  constructor(
    host: HTMLElement,
    protected readonly store: Store,
    title: string,
  ) {
    this.message.setAttribute('role', 'status');
    this.sequence.title = 'Sequence number of the event record that these figures are from';
    const head = el('header', 'gk-head', el('span', 'gk-title', title), this.device, this.sequence, this.light);
    this.element = el('section', 'gk-panel', head, this.message, this.body);
    this.element.setAttribute('aria-label', title);
    host.append(this.element);
    this.theme = readTheme(this.element);
    this.ending.push(
      store.subscribe(() => {
        this.heardAt = performance.now();
        this.schedule();
      }),
      watchTheme(() => {
        this.themeIsRead = false;
        this.schedule();
      }),
    );
    // Plain keys are for what has the focus here: the lab would move, cut or insert cells.
    this.element.addEventListener('keydown', (event) => {
      if (!withModifier(event)) event.stopPropagation();
    });
    const timer = setInterval(() => this.showState(), CHECK_MS);
    this.ending.push(() => clearInterval(timer));
    this.schedule();
  }

  /** Draws before the next repaint; calls in between are one. */
  readonly schedule = (): void => {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      // Outside the page an element has neither style nor size; the panes ask again once they have a size.
      if (!this.element.isConnected) return;
      if (!this.themeIsRead) this.theme = readTheme(this.element);
      this.themeIsRead = true;
      this.showState();
      this.showFigures();
      this.draw();
    });
  };

  /** Called with at least one change since the last call; gauges may still be missing. */
  protected abstract draw(): void;

  protected onDispose(end: () => void): void {
    this.ending.push(end);
  }

  dispose(): void {
    cancelAnimationFrame(this.pending);
    for (const end of this.ending) end();
    this.element.remove();
  }

  /** Whether there is something to draw; else the panel is one sentence. */
  protected hasData(): boolean {
    return this.store.gaugeSeq > 0;
  }

  private showState(): void {
    const { fault, replay } = this.store;
    const quiet = performance.now() - this.heardAt > STALE_MS;
    const ended = 'gkEnded' in this.element.dataset; // the lab extension says so: no message comes of it
    const state: State = fault ? 'fault' : ended ? 'ended' : !this.hasData() ? 'waiting' : replay === 'ended' ? 'over' : quiet ? 'paused' : replay ? 'replay' : 'live';
    setData(this.element, { state });
    setText(this.light, STATES[state]);
    setText(this.message, fault || (SENTENCES[state] ?? ''));
    this.message.hidden = this.message.textContent === '';
    this.body.hidden = !this.hasData();
  }

  /** The figures as data attributes: all of them from one GAUGE record. */
  private showFigures(): void {
    const { gauges, gaugeSeq, lost, dropped } = this.store;
    if (!gauges || gaugeSeq === this.shownSeq) return;
    this.shownSeq = gaugeSeq;
    setText(this.device, this.store.device);
    setText(this.sequence, `#${gaugeSeq}`);
    setData(this.element, {
      seq: gaugeSeq,
      used: gauges.used,
      reserved: gauges.reserved,
      limit: gauges.limit,
      launches: gauges.launches + gauges.hostLaunches,
      running: gauges.runningTasks,
      queued: gauges.queuedTasks,
      lost,
      dropped,
      samples: this.store.history.length,
    });
  }
}
