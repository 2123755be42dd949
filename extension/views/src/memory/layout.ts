// Where each byte of device memory lies on the map: segments end to end, folded into rows.

import { type Block } from '@pygpukit/core';

export const ROW_HEIGHT = 16;
export const ROW_GAP = 5;
const MAX_ROWS = 8;
const MIN_ROW_BYTES = 2 ** 21;
const SEGMENT_GAP_PX = 2;

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export interface PlacedBlock extends Rect {
  readonly block: Block;
}

export interface Layout {
  readonly rowBytes: number;
  readonly rows: number;
  readonly segments: readonly Rect[];
  readonly blocks: readonly PlacedBlock[];
  /** Blocks outside every mapped segment: their contents are in host memory. */
  readonly unmapped: readonly Block[];
}

export function isSame(one: Block, other: Block): boolean {
  return one.address === other.address && one.id === other.id;
}

/** A block that was placed before, where it is now; where it takes several rows, in the one that it was in. */
export function placedAgain(blocks: readonly PlacedBlock[], before: PlacedBlock): PlacedBlock | null {
  const mine = blocks.filter(({ block }) => isSame(block, before.block));
  return mine.find(({ y }) => y === before.y) ?? mine[0] ?? null;
}

/** The next other block, the first one where none was chosen, and the same one at the end. */
export function nextBlock(blocks: readonly PlacedBlock[], from: PlacedBlock | null, step: 1 | -1): PlacedBlock | null {
  if (!from) return blocks[0] ?? null;
  const at = blocks.findIndex(({ block }) => isSame(block, from.block));
  for (let next = at + step; next >= 0; next += step) {
    const placed = blocks[next];
    if (!placed) break;
    if (!isSame(placed.block, from.block)) return placed;
  }
  return from;
}

/** Blocks by owner: the owners' blocks end to end, each owner from a row of its own, largest owner first. */
export function layoutOwners(owners: readonly (readonly Block[])[], width: number): Layout {
  const bytesOf = (blocks: readonly Block[]): number => blocks.reduce((sum, { bytes }) => sum + bytes, 0);
  const whole = owners.reduce((sum, blocks) => sum + bytesOf(blocks), 0);
  const rowBytes = Math.max(MIN_ROW_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, whole / MAX_ROWS))));
  const shown = owners.slice(0, 2 * MAX_ROWS);
  const placed: PlacedBlock[] = [];
  let row = 0;
  for (const blocks of shown) {
    let at = 0;
    for (const block of [...blocks].sort((x, y) => y.bytes - x.bytes)) {
      for (let left = block.bytes; left > 0; ) {
        const bytes = Math.min(left, rowBytes - at);
        const x = (at / rowBytes) * width;
        placed.push({ x, y: row * (ROW_HEIGHT + ROW_GAP), width: Math.max(1, (bytes / rowBytes) * width - 1), block });
        left -= bytes;
        at += bytes;
        if (at < rowBytes) continue;
        at = 0;
        row++;
      }
    }
    if (at > 0) row++;
  }
  return { rowBytes, rows: Math.max(1, row), segments: [], blocks: placed, unmapped: [] };
}

export function layoutMemory(
  segments: readonly (readonly [number, number])[],
  blocks: readonly Block[],
  width: number,
): Layout {
  const total = segments.reduce((sum, [, bytes]) => sum + bytes, 0);
  const rowBytes = Math.max(MIN_ROW_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, total / MAX_ROWS))));
  const place = (offset: number, bytes: number, inset: number): Rect[] => {
    const rects: Rect[] = [];
    for (let at = offset; at < offset + bytes; ) {
      const row = Math.floor(at / rowBytes);
      const end = Math.min(offset + bytes, (row + 1) * rowBytes);
      const x = ((at - row * rowBytes) / rowBytes) * width;
      const right = ((end - row * rowBytes) / rowBytes) * width;
      rects.push({ x, y: row * (ROW_HEIGHT + ROW_GAP), width: Math.max(1, right - x - inset) });
      at = end;
    }
    return rects;
  };

  const placedSegments: Rect[] = [];
  const placedBlocks: PlacedBlock[] = [];
  const unmapped: Block[] = [];
  let offset = 0;
  let next = 0;
  for (const [address, bytes] of segments) {
    placedSegments.push(...place(offset, bytes, SEGMENT_GAP_PX));
    for (; next < blocks.length; next++) {
      const block = blocks[next];
      if (!block || block.address >= address + bytes) break;
      if (block.address < address) {
        unmapped.push(block);
        continue;
      }
      const inside = Math.min(block.bytes, address + bytes - block.address);
      const inset = block.address + inside === address + bytes ? SEGMENT_GAP_PX : 1;
      for (const rect of place(offset + block.address - address, inside, inset)) placedBlocks.push({ ...rect, block });
    }
    offset += bytes;
  }
  unmapped.push(...blocks.slice(next));
  return { rowBytes, rows: Math.max(1, Math.ceil(offset / rowBytes)), segments: placedSegments, blocks: placedBlocks, unmapped };
}
