// When a tenant had blocks in host memory, kept from EVICT, RESTORE and FREE records.

/** A stretch of time in which blocks of one tenant were in host memory. */
export interface Stretch {
  readonly startNs: number;
  /** 0 while some still are. */
  endNs: number;
  /** The most that was there at a time. */
  bytes: number;
}

/** A block whose contents are in host memory. */
export interface HostBlock {
  /** Its own until it is freed, on the host too; block ids have more digits than a number here. */
  readonly address: number;
  readonly tenant: string;
  readonly bytes: number;
}

interface Tenant {
  /** In host memory now. */
  bytes: number;
  readonly stretches: Stretch[];
}

const MAX_TENANTS = 64;
const MAX_STRETCHES = 64;

/** The newest stretches of each tenant; of too many, those make room that have had nothing in host memory for longest. */
export class Evictions {
  private readonly blocks = new Map<number, HostBlock>();
  private readonly tenants = new Map<string, Tenant>();

  clear(): void {
    this.blocks.clear();
    this.tenants.clear();
  }

  /** A block's contents went to the host. What is of no tenant is in no lane. */
  begin(block: HostBlock, timeNs: number): void {
    const tenant = this.blocks.has(block.address) ? undefined : this.tenantOf(block.tenant);
    if (!tenant) return;
    this.blocks.set(block.address, block);
    tenant.bytes += block.bytes;
    const last = tenant.stretches.at(-1);
    if (last?.endNs === 0) last.bytes = Math.max(last.bytes, tenant.bytes);
    else tenant.stretches.push({ startNs: timeNs, endNs: 0, bytes: tenant.bytes });
    if (tenant.stretches.length > MAX_STRETCHES) tenant.stretches.shift();
  }

  /** They came back, or the block was freed. */
  end(address: number, timeNs: number): void {
    const block = this.blocks.get(address);
    const tenant = block && this.tenants.get(block.tenant);
    if (!tenant) return;
    this.blocks.delete(address);
    tenant.bytes -= block.bytes;
    const last = tenant.stretches.at(-1);
    if (last && tenant.bytes === 0) last.endNs = timeNs;
  }

  /** At this moment these blocks and no others are in host memory: what records that were lost would have said. */
  correct(blocks: readonly HostBlock[], timeNs: number): void {
    const there = new Set(blocks.map(({ address }) => address));
    for (const address of [...this.blocks.keys()]) if (!there.has(address)) this.end(address, timeNs);
    for (const block of blocks) this.begin(block, timeNs);
  }

  /** Stretches of a tenant, oldest first. */
  of(tenant: string): readonly Stretch[] {
    return this.tenants.get(tenant)?.stretches ?? [];
  }

  /** Bytes of a tenant that are in host memory now. */
  bytesOf(tenant: string): number {
    return this.tenants.get(tenant)?.bytes ?? 0;
  }

  private tenantOf(name: string): Tenant | undefined {
    if (name === '') return undefined;
    const tenant = this.tenants.get(name) ?? { bytes: 0, stretches: [] };
    if (!this.tenants.delete(name) && this.tenants.size >= MAX_TENANTS) {
      const idle = [...this.tenants].find(([, { bytes }]) => bytes === 0);
      if (!idle) return undefined;
      this.tenants.delete(idle[0]);
    }
    this.tenants.set(name, tenant); // last: the next to make room are others
    return tenant;
  }
}
