// Colours of what comes and goes: one a label in every view of the page, also where each view is a bundle of its own.

/** A label that no view shows any more keeps its colour while there are no more of them than this. */
const REMEMBERED = 256;
const SHARED = Symbol.for('pygpukit.colours');

interface Label {
  readonly colour: number;
  /** How many views show the label. */
  shown: number;
}

function sharedLabels(): Map<string, Label> {
  const page = globalThis as { [SHARED]?: Map<string, Label> };
  return (page[SHARED] ??= new Map());
}

export class Colours {
  private readonly mine = new Map<string, number>();

  constructor(
    private readonly count: number,
    private readonly labels = sharedLabels(),
  ) {}

  /** The label's colour, from 0; a new label gets one that is the least in use. */
  of(label: string): number {
    const mine = this.mine.get(label);
    if (mine !== undefined) return mine;
    let entry = this.labels.get(label);
    if (!entry) this.labels.set(label, (entry = { colour: this.rarest(), shown: 0 }));
    entry.shown++;
    this.mine.set(label, entry.colour);
    return entry.colour;
  }

  /** This view shows these labels, and no others any more. */
  keep(labels: { has(label: string): boolean }): void {
    for (const label of [...this.mine.keys()]) {
      if (labels.has(label)) continue;
      this.mine.delete(label);
      const entry = this.labels.get(label);
      if (!entry || --entry.shown > 0) continue;
      this.labels.delete(label);
      this.labels.set(label, entry); // last: it is forgotten after those that are longer unseen
    }
    if (this.labels.size > REMEMBERED) this.forget();
  }

  private rarest(): number {
    const uses = new Uint32Array(this.count);
    for (const { colour, shown } of this.labels.values()) uses[colour] = (uses[colour] ?? 0) + (shown > 0 ? 1 : 0);
    return uses.indexOf(Math.min(...uses));
  }

  private forget(): void {
    for (const [label, { shown }] of this.labels) {
      if (shown > 0) continue;
      this.labels.delete(label);
      if (this.labels.size <= REMEMBERED) return;
    }
  }
}
