// The live map of device memory: segments and the blocks in them, kept from a snapshot and event records.

export interface Block {
  readonly address: number;
  readonly bytes: number;
  readonly id: number;
  readonly tenant: number;
  readonly name: number;
  readonly cell: number;
  readonly line: number;
  /** False while the contents are in host memory. */
  readonly resident: boolean;
}

/** Every change may be applied twice: records that a snapshot already contains do no harm. */
export class BlockMap {
  private readonly blocks = new Map<number, Block>();
  private readonly segmentBytes = new Map<number, number>();
  private sortedBlocks: Block[] | null = null;
  private sortedSegments: [number, number][] | null = null;

  clear(): void {
    this.blocks.clear();
    this.segmentBytes.clear();
    this.changed();
  }

  set(block: Block): void {
    this.blocks.set(block.address, block);
    this.sortedBlocks = null;
  }

  free(address: number): void {
    if (this.blocks.delete(address)) this.sortedBlocks = null;
  }

  setResident(address: number, resident: boolean): void {
    const block = this.blocks.get(address);
    if (block) this.set({ ...block, resident });
  }

  mapSegment(address: number, bytes: number): void {
    this.segmentBytes.set(address, bytes);
    this.sortedSegments = null;
  }

  unmapSegment(address: number): void {
    if (this.segmentBytes.delete(address)) this.sortedSegments = null;
  }

  get size(): number {
    return this.blocks.size;
  }

  /** Blocks in address order; the same array until something changes. */
  get byAddress(): readonly Block[] {
    this.sortedBlocks ??= [...this.blocks.values()].sort((x, y) => x.address - y.address);
    return this.sortedBlocks;
  }

  /** Mapped segments as [address, bytes] in address order; the same array until something changes. */
  get segments(): readonly (readonly [number, number])[] {
    this.sortedSegments ??= [...this.segmentBytes.entries()].sort((x, y) => x[0] - y[0]);
    return this.sortedSegments;
  }

  private changed(): void {
    this.sortedBlocks = null;
    this.sortedSegments = null;
  }
}
