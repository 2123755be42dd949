// Colours of what comes and goes: each label has one that stays its own for as long as it is shown.

export class Colours {
  private readonly given = new Map<string, number>();

  constructor(private readonly count: number) {}

  /** The label's colour, from 0; a new label gets one that is the least in use. */
  of(label: string): number {
    let colour = this.given.get(label);
    if (colour === undefined) {
      const uses = new Uint32Array(this.count);
      for (const used of this.given.values()) uses[used] = (uses[used] ?? 0) + 1;
      colour = uses.indexOf(Math.min(...uses));
      this.given.set(label, colour);
    }
    return colour;
  }

  /** All other labels lose their colours. */
  keep(labels: { has(label: string): boolean }): void {
    for (const label of this.given.keys()) if (!labels.has(label)) this.given.delete(label);
  }
}
