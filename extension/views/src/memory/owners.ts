// Who holds the memory: blocks grouped by owner, largest first, each owner with a colour that stays its own.

import { type Block, type Store } from '@pygpukit/core';
import { Colours } from '../colours.js';

export interface Owner {
  readonly label: string;
  readonly colour: number;
  bytes: number;
  blocks: number;
}

/** Array or model name, else tenant, else the notebook line that allocated it. */
export function ownerLabel(store: Store, block: Block): string {
  return store.nameOf(block.name) || store.nameOf(block.tenant) || store.placeOf(block.cell, block.line) || 'unnamed';
}

/** What the map groups blocks by. */
export const VIEWS = ['address', 'owner', 'tenant', 'array', 'cell and line'] as const;
export type View = (typeof VIEWS)[number];

/** What a block belongs to in a view. */
export function groupLabel(store: Store, block: Block, view: View): string {
  switch (view) {
    case 'tenant':
      return store.nameOf(block.tenant) || 'no tenant';
    case 'array':
      return store.nameOf(block.name) || 'unnamed';
    case 'cell and line':
      return store.placeOf(block.cell, block.line) || 'not from a cell';
    default:
      return ownerLabel(store, block);
  }
}

export class Owners {
  private readonly colours: Colours;

  constructor(colourCount: number) {
    this.colours = new Colours(colourCount);
  }

  /** An owner keeps its colour while it holds memory. */
  colourOf(label: string): number {
    return this.colours.of(label);
  }

  /** Nothing is shown any more. */
  dispose(): void {
    this.colours.keep(new Set());
  }

  /** One entry an owner, largest first. Owners without memory lose their colour. */
  group(store: Store, view: View = 'address'): Owner[] {
    const owners = new Map<string, Owner>();
    for (const block of store.memory.byAddress) {
      const label = groupLabel(store, block, view);
      let owner = owners.get(label);
      if (!owner) owners.set(label, (owner = { label, colour: this.colourOf(label), bytes: 0, blocks: 0 }));
      owner.bytes += block.bytes;
      owner.blocks++;
    }
    this.colours.keep(owners);
    return [...owners.values()].sort((x, y) => y.bytes - x.bytes || x.label.localeCompare(y.label));
  }
}
