// Reading the memory map: the block that is read stays the same while others come and go, whatever rows it takes.

import { expect, it } from 'vitest';
import { type Block } from '@pygpukit/core';
import { layoutMemory, nextBlock, placedAgain } from '../src/memory/layout.js';

const MiB = 2 ** 20;
const block = (id: number, at: number, mib: number): Block => ({ address: at * MiB, bytes: mib * MiB, id, tenant: 0, name: 0, cell: 0, line: 0, resident: true });
/** Rows of 2 MiB, 21 pixels apart. */
const placed = (...blocks: Block[]) => layoutMemory([[0, 8 * MiB]], blocks, 100).blocks;
const [small, large, last] = [block(1, 0, 1), block(2, 1, 5), block(3, 7, 1)];

it('goes from block to block, not from row to row', () => {
  const all = placed(small, large, last);
  expect(all.map(({ block }) => block.id)).toEqual([1, 2, 2, 2, 3]);
  const first = nextBlock(all, null, 1)!;
  const second = nextBlock(all, first, 1)!;
  const third = nextBlock(all, second, 1)!;
  expect([first, second, third].map(({ block }) => block.id)).toEqual([1, 2, 3]);
  expect([nextBlock(all, third, 1), nextBlock(all, third, -1)?.block, nextBlock(all, all[3]!, -1)?.block, nextBlock(all, first, -1)]).toEqual([third, large, small, first]);
  expect(nextBlock([], null, 1)).toBeNull();
});

it('finds a block again, in its row, and none where another has its address', () => {
  const [, , inRow] = placed(small, large);
  expect(inRow?.y).toBe(21);
  expect(placedAgain(placed(small, { ...large, name: 7 }, last), inRow!)).toMatchObject({ y: 21, block: { id: 2, name: 7 } });
  expect(placedAgain(placed(small, { ...large, id: 4 }), inRow!)).toBeNull();
});
