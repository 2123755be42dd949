// The gauge time series: a ring of typed arrays, oldest first when read.

/** Samples come ten times a second while somebody looks and once a second while nobody does: what is longer is a gap. */
export const GAP_NS = 3e9;

/** Samples of used bytes, reserved bytes and total launches over time. */
export class History {
  private readonly time: Float64Array;
  private readonly usedBytes: Float64Array;
  private readonly reservedBytes: Float64Array;
  private readonly launchCount: Float64Array;
  private head = 0;
  length = 0;
  /** When the number of launches was last seen to grow; 0 before. */
  launchedNs = 0;

  constructor(readonly capacity = 8192) {
    this.time = new Float64Array(capacity);
    this.usedBytes = new Float64Array(capacity);
    this.reservedBytes = new Float64Array(capacity);
    this.launchCount = new Float64Array(capacity);
  }

  /** A sample that is not younger than the newest one is dropped, so that replays leave no double. */
  push(timeNs: number, used: number, reserved: number, launches: number): void {
    if (this.length > 0 && timeNs <= this.timeNs(this.length - 1)) return;
    if (this.length > 0 && launches > this.launches(this.length - 1)) this.launchedNs = timeNs;
    this.time[this.head] = timeNs;
    this.usedBytes[this.head] = used;
    this.reservedBytes[this.head] = reserved;
    this.launchCount[this.head] = launches;
    this.head = (this.head + 1) % this.capacity;
    this.length = Math.min(this.length + 1, this.capacity);
  }

  /**
   * What the kernel kept of the past, oldest first: rows of four float64 (time in ns, used, reserved, launches). They fill
   * what is missing before and between the samples that are here, which stay.
   */
  load(rows: DataView): void {
    const held: [number, number, number, number][] = [];
    for (let i = 0; i < this.length; i++) held.push([this.timeNs(i), this.used(i), this.reserved(i), this.launches(i)]);
    this.clear();
    let next = 0;
    for (let at = 0; at + 32 <= rows.byteLength; at += 32) {
      const [time = 0, used = 0, reserved = 0, launches = 0] = [0, 8, 16, 24].map((offset) => rows.getFloat64(at + offset, true));
      if (!Number.isFinite(time)) continue;
      for (let own = held[next]; own && own[0] <= time; own = held[++next]) this.push(...own);
      this.push(time, used, reserved, launches);
    }
    for (const sample of held.slice(next)) this.push(...sample);
  }

  clear(): void {
    this.head = 0;
    this.length = 0;
    this.launchedNs = 0;
  }

  private slot(i: number): number {
    return (this.head - this.length + i + this.capacity) % this.capacity;
  }
  timeNs(i: number): number {
    return this.time[this.slot(i)] ?? 0;
  }
  used(i: number): number {
    return this.usedBytes[this.slot(i)] ?? 0;
  }
  reserved(i: number): number {
    return this.reservedBytes[this.slot(i)] ?? 0;
  }
  launches(i: number): number {
    return this.launchCount[this.slot(i)] ?? 0;
  }

  /** Index of the first sample at or after a time. */
  indexAt(timeNs: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.timeNs(middle) < timeNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether nothing is known of the time before sample i, back to the one before it. */
  isAfterGap(i: number): boolean {
    return i > 0 && this.timeNs(i) - this.timeNs(i - 1) > GAP_NS;
  }

  /** Launches per second over the span that ends with sample i; 0 where there is no earlier sample, or a gap before it. */
  launchRate(i: number, spanNs = 1e9): number {
    if (i < 1 || i >= this.length || this.isAfterGap(i)) return 0;
    const from = Math.min(this.indexAt(this.timeNs(i) - spanNs), i - 1);
    const seconds = (this.timeNs(i) - this.timeNs(from)) / 1e9;
    return Math.max(0, this.launches(i) - this.launches(from)) / seconds;
  }
}
