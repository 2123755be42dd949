// Links between devices: the newest report, and bytes a second from one report to the next.

export interface Link {
  readonly from: number;
  readonly to: number;
  /** "nvlink", "nvswitch", "pcie", "simulated", "peer", or "host" where copies go by way of the host. */
  readonly kind: string;
  /** NVLinks or PCIe lanes; 0 = not told. */
  readonly lanes: number;
  /** Of the wire, each way; 0 = not told. */
  readonly bytesPerS: number;
  /** Bytes that the process copied so far: straight, and by way of the host. */
  readonly directBytes: number;
  readonly hostBytes: number;
}

const NUMBERS = ['from', 'to', 'lanes', 'bytesPerS', 'directBytes', 'hostBytes'] as const;

export function isLink(row: unknown): row is Link {
  if (typeof row !== 'object' || row === null) return false;
  const link = row as Record<string, unknown>;
  return typeof link['kind'] === 'string' && NUMBERS.every((key) => Number.isFinite(link[key]));
}

export class Links {
  rows: readonly Link[] = [];
  private rates = new Map<string, number>();
  private timeNs = 0;

  /** A report that is not later than the one before begins anew. */
  apply(rows: readonly Link[], timeNs: number): void {
    const before = new Map(this.rows.map((link) => [keyOf(link), moved(link)]));
    const seconds = (timeNs - this.timeNs) / 1e9;
    const rateOf = (link: Link): number => Math.max(0, moved(link) - (before.get(keyOf(link)) ?? moved(link))) / seconds;
    this.rates = new Map(seconds > 0 ? rows.map((link) => [keyOf(link), rateOf(link)]) : []);
    this.rows = rows;
    this.timeNs = timeNs;
  }

  /** Bytes a second of copies over a link, between the last two reports. */
  rate(link: Link): number {
    return this.rates.get(keyOf(link)) ?? 0;
  }

  clear(): void {
    this.rows = [];
    this.rates.clear();
    this.timeNs = 0;
  }
}

function keyOf({ from, to }: Link): string {
  return `${from}>${to}`;
}

function moved({ directBytes, hostBytes }: Link): number {
  return directBytes + hostBytes;
}
