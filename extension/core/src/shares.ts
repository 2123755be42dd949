// Busy device time by tenant in buckets of one second: what a tenant got, to be held against what it was promised.

import { GAP_NS } from './history.js';

export const BUCKET_NS = 1e9;
/** Ten minutes, as long as the kernel's own past. */
export const BUCKETS = 600;
const MAX_TENANTS = 64;

/** Where the times come from: measured device time beats the time of host launches; never both. */
export type ShareSource = 'device' | 'host' | '';

/** What the kernel noted of a stretch of time: who was busy, for how many nanoseconds of it. */
export interface Noted {
  readonly endNs: number;
  readonly spanNs: number;
  readonly busy: readonly (readonly [string, number])[];
}

export class Shares {
  source: ShareSource = '';
  /** Number of the newest bucket. */
  private head = 0;
  private readonly busyNs = new Map<string, Float64Array>();
  private readonly totalNs = new Float64Array(BUCKETS);
  /** 1 where it is known who was busy, if only for a part of the second. */
  private readonly known = new Uint8Array(BUCKETS);
  /** The stretches of time in which this page was told, in order. */
  private covered: [number, number][] = [];

  clear(): void {
    this.busyNs.clear();
    this.totalNs.fill(0);
    this.known.fill(0);
    this.head = 0;
    this.covered = [];
    this.source = '';
  }

  /** A stretch of busy time that ended at `endNs`. Device time, once there is any, replaces the host's. */
  add(source: 'device' | 'host', tenant: string, endNs: number, durationNs: number): void {
    if (!(durationNs > 0) || !this.takes(source)) return;
    this.advance(endNs);
    const fromNs = Math.max(endNs - durationNs, this.firstNs);
    this.spread(tenant, fromNs, endNs, 1);
  }

  /** What the kernel noted while this page did not hear it, oldest first: it counts where this page was told nothing. */
  addNoted(rows: readonly Noted[]): void {
    const last = rows.at(-1);
    if (!last || (rows.some(({ busy }) => busy.length > 0) && !this.takes('device'))) return;
    this.reach(last.endNs);
    for (const { endNs, spanNs, busy } of rows) {
      for (const [fromNs, toNs] of spanNs > 0 ? this.untold(Math.max(endNs - spanNs, this.firstNs), endNs) : []) {
        this.spread('', fromNs, toNs, 0);
        for (const [tenant, ns] of busy) this.spread(tenant, fromNs, toNs, Math.min(1, ns / spanNs));
      }
    }
    for (const { endNs, spanNs } of rows) this.tell(endNs - spanNs, endNs);
  }

  /** Moves on to a moment at which this page was told what is; buckets that fall out are emptied. */
  advance(nowNs: number): void {
    const until = this.covered.at(-1)?.[1] ?? -Infinity;
    if (nowNs <= until) return;
    const from = nowNs - until <= GAP_NS ? until : nowNs;
    this.reach(nowNs);
    this.tell(from, nowNs);
    this.spread('', from, nowNs, 0);
    this.known[this.head % BUCKETS] = 1;
  }

  /** Who was busy in the time that is kept: one that was not makes room for others. */
  get tenants(): string[] {
    return [...this.busyNs.keys()];
  }

  /**
   * Share of the device in the second with this number, 0 to 1; NaN where nothing is known of it. Where streams overlap and
   * more than a second was busy in a second, it is the share of what was busy.
   */
  shareIn(tenant: string, second: number): number {
    const at = second % BUCKETS;
    if (second > this.head || second < 0 || second <= this.head - BUCKETS || this.known[at] === 0) return NaN;
    return (this.busyNs.get(tenant)?.[at] ?? 0) / Math.max(BUCKET_NS, this.totalNs[at] ?? 0);
  }

  /** The same in the bucket `age` seconds back; 0 where nothing is known. */
  share(tenant: string, age: number): number {
    return this.shareIn(tenant, this.head - age) || 0;
  }

  /** Mean share over the full seconds before a moment, those that are known of the last few; 0 where none is. */
  meanBefore(tenant: string, untilNs: number, seconds: number): number {
    const end = Math.min(Math.floor(untilNs / BUCKET_NS), this.head);
    let [sum, count] = [0, 0];
    for (let second = end - seconds; second < end; second++) {
      const share = this.shareIn(tenant, second);
      if (Number.isNaN(share)) continue;
      sum += share;
      count++;
    }
    return count > 0 ? sum / count : 0;
  }

  /** The oldest moment that is kept. */
  private get firstNs(): number {
    return (this.head - BUCKETS + 1) * BUCKET_NS;
  }

  /** Whether times of a source count, from now on; the host's end with the first of the device. */
  private takes(source: 'device' | 'host'): boolean {
    if (source === this.source) return true;
    if (this.source === 'device') return false;
    if (this.source === 'host') this.clear();
    this.source = source;
    return true;
  }

  /** Notes that it is known what was in a stretch of time. */
  private tell(fromNs: number, toNs: number): void {
    const newest = this.covered.at(-1);
    if (newest?.[1] === fromNs) {
      newest[1] = toNs;
      return;
    }
    const covered: [number, number][] = [];
    for (const [from, to] of [...this.covered, [fromNs, toNs] as [number, number]].sort(([one], [other]) => one - other)) {
      const last = covered.at(-1);
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else if (to >= this.firstNs) covered.push([from, to]);
    }
    this.covered = covered;
  }

  /** The parts of a stretch of time of which this page was told nothing. */
  private untold(fromNs: number, toNs: number): [number, number][] {
    const parts: [number, number][] = [];
    let from = fromNs;
    for (const [begin, end] of this.covered) {
      if (begin >= toNs) break;
      if (from < begin) parts.push([from, begin]);
      from = Math.max(from, end);
    }
    if (from < toNs) parts.push([from, toNs]);
    return parts;
  }

  /** Busy for this part of a stretch, which is known from now on. */
  private spread(tenant: string, fromNs: number, toNs: number, part: number): void {
    for (let from = fromNs; from < toNs; ) {
      const bucket = Math.floor(from / BUCKET_NS);
      const to = Math.min(toNs, (bucket + 1) * BUCKET_NS);
      const at = bucket % BUCKETS;
      this.known[at] = 1;
      if (part > 0) {
        this.totalNs[at] = (this.totalNs[at] ?? 0) + (to - from) * part;
        const own = this.ofTenant(tenant);
        if (own) own[at] = (own[at] ?? 0) + (to - from) * part;
      }
      from = to;
    }
  }

  private reach(nowNs: number): void {
    const head = Math.floor(nowNs / BUCKET_NS);
    if (head <= this.head) return;
    for (let bucket = Math.max(this.head + 1, head - BUCKETS + 1); bucket <= head; bucket++) {
      const at = bucket % BUCKETS;
      this.totalNs[at] = this.known[at] = 0;
      for (const own of this.busyNs.values()) own[at] = 0;
    }
    this.head = head;
    for (const [tenant, own] of this.busyNs) if (own.every((ns) => ns === 0)) this.busyNs.delete(tenant);
  }

  private ofTenant(tenant: string): Float64Array | undefined {
    const known = this.busyNs.get(tenant);
    if (known || this.busyNs.size >= MAX_TENANTS) return known;
    const buckets = new Float64Array(BUCKETS);
    this.busyNs.set(tenant, buckets);
    return buckets;
  }
}
