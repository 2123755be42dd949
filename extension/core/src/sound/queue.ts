// What is played when, in whole samples: every sample once and in order; where none is here in time there is silence between them.

/** Samples `from` to `from + count` of the sound, heard from sample `at` of the output's clock on. */
export interface Piece {
  readonly from: number;
  readonly count: number;
  readonly at: number;
}

export interface Timing {
  /** Samples that are given to the output before they are heard. */
  readonly ahead: number;
  /** Samples between now and the first that can still be heard in time. */
  readonly lead: number;
  /** Samples of the longest piece. */
  readonly longest: number;
}

const NEVER = Number.MAX_SAFE_INTEGER;
/** Pieces that were heard are forgotten beyond so many. */
const REMEMBERED = 64;

export class Queue {
  /** How often there was silence because nothing was here in time. */
  gaps = 0;
  private readonly queued: Piece[] = [];
  private due = -1;

  /** rate: of the output. from: the sample of the sound to begin with. */
  constructor(
    private readonly rate: number,
    private readonly timing: Timing,
    private from: number,
  ) {}

  /** The next sample of the sound that is wanted. */
  get next(): number {
    return this.from;
  }

  /** What is to be given to the output now. available: how many samples there are from one on, so many at most. end: where the sound ends. */
  take(now: number, available: (from: number, max: number) => number, end = NEVER): Piece[] {
    const pieces: Piece[] = [];
    for (;;) {
      const late = this.due < now + this.timing.lead;
      let at = late ? now + this.timing.lead : this.due;
      while (late && !hasTime(at, this.rate)) at++;
      if (at >= now + this.timing.ahead) return pieces;
      let count = available(this.from, this.timing.longest);
      // What follows begins where this ends, which has to be a time that the output takes for a whole sample.
      while (count > 0 && this.from + count < end && !hasTime(at + count, this.rate)) count--;
      if (count === 0) return pieces;
      if (late && this.queued.length > 0 && at > this.due) this.gaps++;
      pieces.push({ from: this.from, count, at });
      this.from += count;
      this.due = at + count;
      this.queued.push(pieces[pieces.length - 1] as Piece);
      if (this.queued.length > REMEMBERED) this.queued.shift();
    }
  }

  /** The sample of the sound that is heard now; between two pieces the end of the first. */
  heard(now: number): number {
    let last = this.queued[0];
    if (!last) return this.from;
    for (const piece of this.queued) {
      if (piece.at > now) break;
      last = piece;
    }
    return last.from + Math.min(Math.max(0, now - last.at), last.count);
  }

  /** Whether everything that was given has been heard. */
  silent(now: number): boolean {
    return now >= this.due;
  }
}

/** Whether there is a time in seconds that a clock of this rate takes for exactly this sample; for about one in eight there is none. */
export function hasTime(sample: number, rate: number): boolean {
  return (sample / rate) * rate === sample;
}
