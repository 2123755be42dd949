// The live map of device memory: blocks by address, coloured by owner; point or use the arrow keys to read one.

import { type Block, type Store, format } from '@pygpukit/core';
import { el, setText, withModifier } from '../dom.js';
import { Pane } from '../pane.js';
import { type Theme } from '../theme.js';
import { revealCell } from '../reveal.js';
import { type Layout, type PlacedBlock, ROW_GAP, ROW_HEIGHT, isSame, layoutMemory, layoutOwners, nextBlock, placedAgain } from './layout.js';
import { type Owners, type View, groupLabel, ownerLabel } from './owners.js';

export class MemoryMap {
  readonly element: HTMLElement;
  private readonly pane: Pane;
  private readonly tip = el('div', 'gk-tip');
  private layout: Layout | null = null;
  /** The block that is being read: blocks that come and go put no other in its place. */
  private chosen: PlacedBlock | null = null;
  view: View = 'address';

  constructor(
    private readonly store: Store,
    private readonly owners: Owners,
    private readonly redraw: () => void,
  ) {
    this.pane = new Pane('Map of device memory. Arrow keys read the blocks, Enter goes to the cell of one.', ROW_HEIGHT, redraw);
    const { canvas } = this.pane;
    canvas.tabIndex = 0;
    this.tip.setAttribute('role', 'status');
    this.tip.hidden = true;
    canvas.addEventListener('pointermove', (event) => this.choose(this.blockAt(event.offsetX, event.offsetY)));
    canvas.addEventListener('pointerleave', () => this.choose(null));
    canvas.addEventListener('blur', () => this.choose(null));
    canvas.addEventListener('click', (event) => this.reveal(this.blockAt(event.offsetX, event.offsetY)));
    canvas.addEventListener('keydown', (event) => {
      if (withModifier(event)) return;
      if (event.key === 'Enter') this.reveal(this.chosen);
      const step = ({ ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 } as const)[event.key];
      if (event.key === 'Escape') this.choose(null);
      if (step === undefined) return;
      event.preventDefault();
      this.choose(nextBlock(this.layout?.blocks ?? [], this.chosen, step));
    });
    this.element = el('div', 'gk-map', canvas, this.tip);
  }

  draw(theme: Theme): Layout {
    const { byAddress, segments } = this.store.memory;
    const width = this.pane.widthPx;
    const layout = this.view === 'address' ? layoutMemory(segments, byAddress, width) : layoutOwners(this.byOwner(byAddress), width);
    this.layout = layout;
    const chosen = this.chosen && placedAgain(layout.blocks, this.chosen);
    this.chosen = chosen;
    this.pane.setHeight(layout.rows * (ROW_HEIGHT + ROW_GAP) - ROW_GAP);
    this.pane.draw((context) => {
      context.fillStyle = theme.well;
      for (const { x, y, width } of layout.segments) box(context, x, y, width);
      for (const { x, y, width, block } of layout.blocks) {
        const colour = theme.owners[this.owners.colourOf(groupLabel(this.store, block, this.view))] ?? theme.text;
        context.fillStyle = colour;
        context.strokeStyle = colour;
        // An evicted block keeps its place and loses its body.
        context.globalAlpha = block.resident ? (chosen && !isSame(block, chosen.block) ? 0.45 : 1) : 0.25;
        box(context, x, y, width);
        context.globalAlpha = 1;
        if (!block.resident && width > 3) context.strokeRect(x + 0.5, y + 0.5, width - 1, ROW_HEIGHT - 1);
      }
    });
    this.showTip();
    return layout;
  }

  private byOwner(blocks: readonly Block[]): Block[][] {
    const groups = new Map<string, Block[]>();
    for (const block of blocks) {
      const label = groupLabel(this.store, block, this.view);
      const group = groups.get(label);
      if (group) group.push(block);
      else groups.set(label, [block]);
    }
    const bytes = (group: readonly Block[]): number => group.reduce((sum, block) => sum + block.bytes, 0);
    return [...groups.values()].sort((x, y) => bytes(y) - bytes(x));
  }

  /** Goes to the cell that allocated a block. */
  private reveal(placed: PlacedBlock | null): void {
    if (placed) revealCell(this.element, this.store.nameOf(placed.block.cell));
  }

  private blockAt(x: number, y: number): PlacedBlock | null {
    const hit = this.layout?.blocks.find(
      (rect) => x >= rect.x - 1 && x <= rect.x + rect.width + 1 && y >= rect.y && y <= rect.y + ROW_HEIGHT,
    );
    return hit ?? null;
  }

  private choose(placed: PlacedBlock | null): void {
    if (placed === this.chosen) return;
    this.chosen = placed;
    this.redraw();
  }

  private showTip(): void {
    const placed = this.chosen;
    this.tip.hidden = !placed;
    if (!placed) return;
    const { block } = placed;
    const place = this.store.placeOf(block.cell, block.line);
    const state = block.resident ? '' : ', evicted to host memory';
    const lines = [ownerLabel(this.store, block), `${format.bytes(block.bytes)} at ${format.address(block.address)}${state}`];
    const tenant = this.store.nameOf(block.tenant);
    if (tenant && tenant !== lines[0]) lines.push(`tenant ${tenant}`);
    if (place) lines.push(place);
    setText(this.tip, lines.join('\n'));
    const centre = placed.x + placed.width / 2;
    const half = this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.min(Math.max(centre, half), Math.max(half, this.pane.widthPx - half))}px`;
    this.tip.style.top = `${placed.y + ROW_HEIGHT + 6}px`;
  }

  dispose(): void {
    this.pane.dispose();
  }
}

function box(context: CanvasRenderingContext2D, x: number, y: number, width: number): void {
  context.beginPath();
  context.roundRect(x, y, width, ROW_HEIGHT, Math.min(2.5, width / 3));
  context.fill();
}
