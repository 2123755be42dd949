// The picture of a timeline: rows of bars over a stretch of time, drawn from levels of detail.

import { type TimelineData, type TimelineRow } from '@pygpukit/core';
import { type Theme } from '../theme.js';

export const ROW_HEIGHT = 22;
const GAP = 3;
const MIN_LABEL_PX = 46;
const DIMMED = 0.25;

export interface Frame {
  /** Nodes that were looked at. */
  seen: number;
  /** Bars that were painted. */
  bars: number;
}

/** The part of a canvas's context that bars need. */
export type Brush = Pick<CanvasRenderingContext2D, 'fillStyle' | 'globalAlpha' | 'fillRect' | 'fillText'>;

export interface Stretch {
  readonly fromNs: number;
  readonly toNs: number;
}

/**
 * Paints the bars of all rows. Where a search is on, what it does not find is pale. `labels` also writes names into bars that are wide
 * enough.
 */
export function paintRows(
  brush: Brush,
  data: TimelineData,
  rows: readonly TimelineRow[],
  { fromNs, toNs }: Stretch,
  width: number,
  colourOf: (record: number) => string,
  searching: boolean,
  text: string,
): Frame {
  const frame = { seen: 0, bars: 0 };
  const scale = width / (toNs - fromNs);
  rows.forEach(({ levels }, at) => {
    const top = at * ROW_HEIGHT + 1;
    let paintedTo = -1; // what lies in a pixel that is painted is left out
    frame.seen += levels.paint(fromNs, toNs, 1 / scale, (record, beginNs, endNs, marked, alone) => {
      const left = Math.max(0, (beginNs - fromNs) * scale);
      const right = Math.min(width, (endNs - fromNs) * scale);
      const shown = Math.max(1, right - left);
      if (right <= paintedTo && !(searching && marked)) return;
      paintedTo = Math.max(paintedTo, left + shown);
      brush.globalAlpha = searching && !marked ? DIMMED : 1;
      brush.fillStyle = colourOf(record);
      brush.fillRect(left, top, shown, ROW_HEIGHT - GAP);
      frame.bars++;
      if (!alone || shown < MIN_LABEL_PX) return;
      brush.fillStyle = text;
      const name = data.head.names[data.name[record] as number] ?? '';
      brush.fillText(fitting(name, shown), left + 4, top + (ROW_HEIGHT - GAP) / 2);
    });
  });
  brush.globalAlpha = 1;
  return frame;
}

/** As much of a name as a bar has room for, at six pixels a letter. */
function fitting(name: string, width: number): string {
  const letters = Math.floor((width - 8) / 6);
  return name.length <= letters ? name : `${name.slice(0, Math.max(1, letters - 1))}\u2026`;
}

/** Colours by name: the names that take longest have one each, the others share the last; waits have those of phases. */
export function coloursOf(data: TimelineData, theme: Theme): (record: number) => string {
  const { names, lanes } = data.head;
  const total = new Float64Array(names.length);
  const waits = new Uint8Array(names.length);
  for (let i = 0; i < data.length; i++) {
    const name = data.name[i] as number;
    total[name] = (total[name] as number) + (data.tookNs[i] as number);
    if (lanes[data.lane[i] as number]?.waits) waits[name] = 1;
  }
  const longest = names.map((_, i) => i).sort((one, other) => (total[other] as number) - (total[one] as number));
  const colours = names.map(() => theme.owners[theme.owners.length - 1] ?? theme.used);
  let next = 0;
  for (const name of longest) {
    if (waits[name] === 0 && next < theme.owners.length - 1) colours[name] = theme.owners[next++] ?? theme.used;
  }
  const ofWaits = [2, 9, 8, 5, 1, 3, 0, 8];
  longest.filter((name) => waits[name] === 1).forEach((name, i) => (colours[name] = theme.phases[ofWaits[i % ofWaits.length] as number] ?? theme.muted));
  return (record) => colours[data.name[record] as number] ?? theme.muted;
}
