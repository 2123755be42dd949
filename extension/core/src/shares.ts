// Busy device time by tenant in buckets of one second: what a tenant got, to be held against what it was promised.

export const BUCKET_NS = 1e9;
export const BUCKETS = 60;
const MAX_TENANTS = 64;

/** Where the times come from: measured device time beats the time of host launches; never both. */
export type ShareSource = 'device' | 'host' | '';

export class Shares {
  source: ShareSource = '';
  /** Number of the newest bucket, and of the first that there was. */
  private head = 0;
  private first = 0;
  private readonly busyNs = new Map<string, Float64Array>();
  private readonly totalNs = new Float64Array(BUCKETS);

  clear(): void {
    this.busyNs.clear();
    this.totalNs.fill(0);
    this.head = this.first = 0;
    this.source = '';
  }

  /** A stretch of busy time that ended at `endNs`. Device time, once there is any, replaces the host's. */
  add(source: 'device' | 'host', tenant: string, endNs: number, durationNs: number): void {
    if (!(durationNs > 0)) return;
    if (source !== this.source) {
      if (this.source === 'device') return;
      this.clear();
      this.source = source;
    }
    this.advance(endNs);
    let from = Math.max(endNs - durationNs, (this.head - BUCKETS + 1) * BUCKET_NS);
    while (from < endNs) {
      const bucket = Math.floor(from / BUCKET_NS);
      const to = Math.min(endNs, (bucket + 1) * BUCKET_NS);
      const at = bucket % BUCKETS;
      this.totalNs[at] = (this.totalNs[at] ?? 0) + to - from;
      const own = this.ofTenant(tenant);
      if (own) own[at] = (own[at] ?? 0) + to - from;
      from = to;
    }
  }

  /** Moves on to a moment; buckets that fall out are emptied. */
  advance(nowNs: number): void {
    const head = Math.floor(nowNs / BUCKET_NS);
    if (head <= this.head) return;
    if (this.first === 0) this.first = head;
    for (let bucket = Math.max(this.head + 1, head - BUCKETS + 1); bucket <= head; bucket++) {
      this.totalNs[bucket % BUCKETS] = 0;
      for (const own of this.busyNs.values()) own[bucket % BUCKETS] = 0;
    }
    this.head = head;
    for (const [tenant, own] of this.busyNs) if (own.every((ns) => ns === 0)) this.busyNs.delete(tenant);
  }

  /** Full seconds that are known, at most BUCKETS - 1. */
  get seconds(): number {
    return Math.min(this.head - this.first, BUCKETS - 1);
  }

  /** Who was busy in the time that is kept: one that was not makes room for others. */
  get tenants(): string[] {
    return [...this.busyNs.keys()];
  }

  /**
   * Share of the device in the bucket `age` seconds back, 0 to 1. Where streams overlap and more than a second was
   * busy in a second, it is the share of what was busy.
   */
  share(tenant: string, age: number): number {
    if (this.head - age < 0) return 0;
    const at = (this.head - age) % BUCKETS;
    return (this.busyNs.get(tenant)?.[at] ?? 0) / Math.max(BUCKET_NS, this.totalNs[at] ?? 0);
  }

  /** Mean share over the newest full seconds. */
  recent(tenant: string, seconds = 10): number {
    let sum = 0;
    for (let age = 1; age <= seconds; age++) sum += this.share(tenant, age);
    return sum / seconds;
  }

  private ofTenant(tenant: string): Float64Array | undefined {
    const known = this.busyNs.get(tenant);
    if (known || this.busyNs.size >= MAX_TENANTS) return known;
    const made = new Float64Array(BUCKETS);
    this.busyNs.set(tenant, made);
    return made;
  }
}
