// The newest entries of something that never ends: a bounded list, oldest first.

export class Recent<T> {
  private entries: T[] = [];
  /** Entries ever added: tells a view whether there is something new. */
  total = 0;

  constructor(private readonly capacity: number) {}

  push(entry: T): void {
    this.entries.push(entry);
    this.total++;
    // Cut in halves, so that a push costs the same on average.
    if (this.entries.length >= 2 * this.capacity) this.entries = this.entries.slice(-this.capacity);
  }

  clear(): void {
    this.entries = [];
    this.total = 0;
  }

  get all(): readonly T[] {
    return this.entries.slice(-this.capacity);
  }
}
