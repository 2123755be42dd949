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

/** Space in mapped segments that no block has: all of it, and the largest piece. Blocks and segments in address order. */
export function gaps(segments: readonly (readonly [number, number])[], blocks: readonly Block[]): { free: number; largest: number } {
  let free = 0;
  let largest = 0;
  let next = 0;
  const gap = (bytes: number): void => {
    free += Math.max(0, bytes);
    largest = Math.max(largest, bytes);
  };
  for (const [address, bytes] of segments) {
    let at = address;
    for (; next < blocks.length; next++) {
      const block = blocks[next];
      if (!block || block.address >= address + bytes) break;
      if (block.address < address) continue;
      gap(block.address - at);
      at = block.address + block.bytes;
    }
    gap(address + bytes - at);
  }
  return { free, largest };
}

/** How much of the free space one allocation could not have: 1 - largest gap / all gaps, from 0 to 1; 0 where nothing is free. */
export function fragmentation(segments: readonly (readonly [number, number])[], blocks: readonly Block[]): number {
  const { free, largest } = gaps(segments, blocks);
  return free > 0 ? 1 - largest / free : 0;
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

  /** An array got a name after it was allocated. */
  rename(address: number, id: number, name: number): void {
    const block = this.blocks.get(address);
    if (block?.id === id) this.set({ ...block, name });
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
