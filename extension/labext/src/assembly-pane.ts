// PTX and SASS of a cell's kernels beside the notebook: a line of code marks its line of the cell, and the other way round.

import { Widget } from '@lumino/widgets';
import { type Assembly, facts, firstLines, type Kind, KINDS, type Listing } from './assembly-data.js';

export interface PaneEvents {
  /** The user chose another kernel of the cell. */
  readonly kernelChosen: (kernel: string) => void;
  /** The user chose a line of code that comes from this line of the cell. */
  readonly lineChosen: (source: number) => void;
}

const LABELS: Readonly<Record<Kind, string>> = { ptx: 'PTX', sass: 'SASS' };

/** An element with classes and text; kernel text only ever becomes textContent. */
function element<K extends keyof HTMLElementTagNameMap>(tag: K, className = '', text = ''): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}

export class AssemblyPane extends Widget {
  private readonly choice = element('select', 'gk-asm-kernel');
  private readonly tabs = new Map<Kind, HTMLButtonElement>();
  private readonly card = element('dl', 'gk-asm-card');
  private readonly note = element('p', 'gk-asm-note');
  private readonly list = element('div', 'gk-asm-list');
  private kind: Kind = 'ptx';
  private assembly: Assembly | null = null;
  private rows: HTMLElement[] = [];
  private active = -1;

  constructor(private readonly events: PaneEvents) {
    super();
    this.addClass('gk-asm');
    const head = element('div', 'gk-asm-head');
    this.choice.setAttribute('aria-label', 'Kernel');
    this.choice.addEventListener('change', () => this.events.kernelChosen(this.choice.value));
    head.append(this.choice);
    for (const kind of KINDS) {
      const tab = element('button', 'gk-asm-tab', LABELS[kind]);
      tab.type = 'button';
      tab.addEventListener('click', () => this.showKind(kind));
      this.tabs.set(kind, tab);
      head.append(tab);
    }
    this.note.setAttribute('role', 'status');
    this.list.tabIndex = 0;
    this.list.setAttribute('role', 'listbox');
    this.list.addEventListener('click', (event) => this.choose(this.rows.indexOf((event.target as Element).closest('.gk-asm-line') as HTMLElement)));
    this.list.addEventListener('keydown', (event) => this.onKey(event));
    this.node.append(head, this.card, this.note, this.list);
    this.showSentence([], '', 'Click into a %%cuda cell that has run to see its code.');
  }

  /** No code, and why. */
  showSentence(kernels: readonly string[], kernel: string, sentence: string): void {
    this.render(kernels, kernel, null, sentence);
  }

  showAssembly(kernels: readonly string[], kernel: string, assembly: Assembly, note: string): void {
    this.render(kernels, kernel, assembly, note);
  }

  /** Marks the code of a line of the cell and brings it into view. */
  markSource(source: number): void {
    const first = firstLines(this.listing()?.lines ?? []).get(source);
    this.listing()?.lines.forEach((line, at) => this.rows[at]?.classList.toggle('gk-mod-marked', source > 0 && line.source === source));
    if (first !== undefined) this.setActive(first, false);
  }

  private render(kernels: readonly string[], kernel: string, assembly: Assembly | null, note: string): void {
    this.assembly = assembly;
    this.choice.replaceChildren(...kernels.map((name) => new Option(name, name, false, name === kernel)));
    this.choice.hidden = kernels.length === 0;
    this.note.textContent = note;
    this.card.replaceChildren();
    for (const { name, value, note: about } of assembly ? facts(assembly.card) : []) {
      const row = element('div');
      row.append(element('dt', '', name), element('dd', '', value));
      row.title = about;
      row.append(element('span', 'gk-asm-about', about));
      this.card.append(row);
    }
    this.showKind(this.kind);
  }

  private showKind(kind: Kind): void {
    this.kind = kind;
    for (const [one, tab] of this.tabs) {
      tab.setAttribute('aria-pressed', String(one === kind));
      tab.disabled = this.assembly === null;
    }
    const listing = this.listing();
    const title = this.assembly ? `${LABELS[kind]} for ${this.assembly.arch}` : LABELS[kind];
    this.list.setAttribute('aria-label', title);
    this.active = -1;
    this.rows = (listing?.lines ?? []).map(({ source, text }, at) => {
      const row = element('div', 'gk-asm-line');
      row.id = `${this.id}-line-${at}`;
      row.setAttribute('role', 'option');
      row.setAttribute('aria-selected', 'false');
      row.append(element('span', 'gk-asm-number', source > 0 ? String(source) : ''), element('code', '', text));
      return row;
    });
    const said = listing?.problem || (listing?.left ? `${listing.left} more lines: see the kernel's .${kind}` : '');
    this.list.replaceChildren(...this.rows, ...(said ? [element('p', 'gk-asm-said', said)] : []));
    this.list.removeAttribute('aria-activedescendant');
  }

  private listing(): Listing | undefined {
    return this.assembly?.listings[this.kind];
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.rows.length) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.active + step, 0), this.rows.length - 1));
  }

  private choose(at: number): void {
    if (at < 0) return;
    const { source } = this.listing()?.lines[at] ?? { source: 0 };
    this.markSource(source);
    this.setActive(at, true);
    if (source > 0) this.events.lineChosen(source);
  }

  private setActive(at: number, chosen: boolean): void {
    this.rows[this.active]?.setAttribute('aria-selected', 'false');
    this.active = at;
    const row = this.rows[at];
    if (!row) return;
    row.setAttribute('aria-selected', 'true');
    this.list.setAttribute('aria-activedescendant', row.id);
    row.scrollIntoView({ block: chosen ? 'nearest' : 'center' });
  }
}
