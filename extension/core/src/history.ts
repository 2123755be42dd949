// The gauge time series: a ring of typed arrays, oldest first when read.

/** Samples of used bytes, reserved bytes and total launches over time. */
export class History {
  private readonly time: Float64Array;
  private readonly usedBytes: Float64Array;
  private readonly reservedBytes: Float64Array;
  private readonly launchCount: Float64Array;
  private head = 0;
  length = 0;

  constructor(readonly capacity = 8192) {
    this.time = new Float64Array(capacity);
    this.usedBytes = new Float64Array(capacity);
    this.reservedBytes = new Float64Array(capacity);
    this.launchCount = new Float64Array(capacity);
  }

  /** A sample that is not younger than the newest one is dropped, so that replays leave no double. */
  push(timeNs: number, used: number, reserved: number, launches: number): void {
    if (this.length > 0 && timeNs <= this.timeNs(this.length - 1)) return;
    this.time[this.head] = timeNs;
    this.usedBytes[this.head] = used;
    this.reservedBytes[this.head] = reserved;
    this.launchCount[this.head] = launches;
    this.head = (this.head + 1) % this.capacity;
    this.length = Math.min(this.length + 1, this.capacity);
  }

  /**
   * What the kernel kept of the past, oldest first: rows of four float64 (time in ns, used, reserved, launches). Samples
   * that are here already stay; a past that is older than they are is put before them.
   */
  load(rows: DataView): void {
    const held: [number, number, number, number][] = [];
    for (let i = 0; i < this.length; i++) held.push([this.timeNs(i), this.used(i), this.reserved(i), this.launches(i)]);
    this.clear();
    const first = held[0]?.[0] ?? Infinity;
    for (let at = 0; at + 32 <= rows.byteLength; at += 32) {
      const [time, used, reserved, launches] = [0, 8, 16, 24].map((offset) => rows.getFloat64(at + offset, true));
      if (time === undefined || !(time < first)) break;
      this.push(time, used ?? 0, reserved ?? 0, launches ?? 0);
    }
    for (const sample of held) this.push(...sample);
  }

  clear(): void {
    this.head = 0;
    this.length = 0;
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

  /** Launches per second over the span that ends with sample i; 0 where there is no earlier sample. */
  launchRate(i: number, spanNs = 1e9): number {
    if (i < 1 || i >= this.length) return 0;
    const from = Math.min(this.indexAt(this.timeNs(i) - spanNs), i - 1);
    const seconds = (this.timeNs(i) - this.timeNs(from)) / 1e9;
    return Math.max(0, this.launches(i) - this.launches(from)) / seconds;
  }
}
