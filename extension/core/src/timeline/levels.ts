// Levels of detail of one row: what is narrower than a pixel is one node, so that a frame costs what its width has, not what there is.

const FANOUT = 8;

/** A level: nodes of FANOUT nodes of the one below. */
interface Level {
  readonly beginNs: Float64Array;
  /** The latest end in a node. */
  readonly endNs: Float64Array;
  /** The record of a node that lasts longest. */
  readonly longest: Uint32Array;
  /** 1 where a record of the node is marked. */
  readonly marked: Uint8Array;
}

export interface Columns {
  readonly beginNs: Float64Array;
  readonly tookNs: Float64Array;
}

/** Called with a record, or with the longest of several and the stretch that they lie in. */
export type Paint = (record: number, beginNs: number, endNs: number, marked: boolean, alone: boolean) => void;

export class Levels {
  private readonly levels: Level[] = [];

  /** items: records in the order of their beginnings. */
  constructor(
    private readonly columns: Columns,
    readonly items: Uint32Array,
  ) {
    const { beginNs, tookNs } = columns;
    const base: Level = {
      beginNs: Float64Array.from(items, (i) => beginNs[i] as number),
      endNs: Float64Array.from(items, (i) => (beginNs[i] as number) + (tookNs[i] as number)),
      longest: items,
      marked: new Uint8Array(items.length),
    };
    for (let level = base; ; level = this.above(level)) {
      this.levels.push(level);
      if (level.longest.length <= FANOUT) break;
    }
  }

  /** Marks the records for which a condition holds, for paint(). */
  mark(holds: ((record: number) => boolean) | null): void {
    const [base] = this.levels as [Level];
    if (!holds) base.marked.fill(0);
    else this.items.forEach((record, i) => (base.marked[i] = holds(record) ? 1 : 0));
    for (let k = 1; k < this.levels.length; k++) {
      const [below, level] = [this.levels[k - 1] as Level, this.levels[k] as Level];
      level.marked.fill(0);
      below.marked.forEach((marked, i) => (level.marked[(i / FANOUT) | 0] = (level.marked[(i / FANOUT) | 0] as number) | marked));
    }
  }

  /**
   * Paints what lies in a window: records, and nodes that are narrower than `leastNs` as one; 0 gives every record. Returns how many nodes
   * were looked at.
   */
  paint(fromNs: number, toNs: number, leastNs: number, paint: Paint): number {
    const top = this.levels.length - 1;
    return this.walk(top, 0, (this.levels[top] as Level).longest.length, fromNs, toNs, leastNs, paint);
  }

  /** The latest record that covers a time, -1 for none. */
  at(timeNs: number): number {
    let record = -1;
    this.paint(timeNs, timeNs, 0, (one) => (record = one));
    return record;
  }

  /** Whether a record is in the row: records are in the order of their numbers. */
  has(record: number): boolean {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.items[middle] as number) < record) low = middle + 1;
      else high = middle;
    }
    return this.items[low] === record;
  }

  private walk(k: number, first: number, end: number, fromNs: number, toNs: number, leastNs: number, paint: Paint): number {
    const { beginNs, endNs, longest, marked } = this.levels[k] as Level;
    let seen = 0;
    for (let i = first; i < end; i++) {
      seen++;
      const begin = beginNs[i] as number;
      if (begin > toNs) break;
      const until = endNs[i] as number;
      if (until < fromNs) continue;
      if (k === 0 || until - begin < leastNs) paint(longest[i] as number, begin, until, marked[i] === 1, k === 0);
      else seen += this.walk(k - 1, i * FANOUT, Math.min((i + 1) * FANOUT, this.lengthOf(k - 1)), fromNs, toNs, leastNs, paint);
    }
    return seen;
  }

  private lengthOf(k: number): number {
    return (this.levels[k] as Level).longest.length;
  }

  private above(below: Level): Level {
    const count = Math.ceil(below.longest.length / FANOUT);
    const level: Level = {
      beginNs: new Float64Array(count),
      endNs: new Float64Array(count),
      longest: new Uint32Array(count),
      marked: new Uint8Array(count),
    };
    for (let i = 0; i < below.longest.length; i++) {
      const node = (i / FANOUT) | 0;
      const record = below.longest[i] as number;
      if (i % FANOUT === 0) {
        level.beginNs[node] = below.beginNs[i] as number;
        level.longest[node] = record;
      } else if ((this.columns.tookNs[record] as number) > (this.columns.tookNs[level.longest[node] as number] as number)) {
        level.longest[node] = record;
      }
      level.endNs[node] = Math.max(level.endNs[node] as number, below.endNs[i] as number);
    }
    return level;
  }
}
