// Rows of a timeline: by stream or by tenant; where records of a lane overlap in time, the lane takes several rows.

import { type Lane, type TimelineData } from './data.js';
import { Levels } from './levels.js';

export const TIMELINE_GROUPINGS = ['stream', 'tenant'] as const;
export type TimelineGrouping = (typeof TIMELINE_GROUPINGS)[number];

/** Rows that one lane takes at most; beyond them records lie over each other. */
const MAX_ROWS = 4;

/** Rows of a lane follow each other; only the first carries the label. */
export interface TimelineRow {
  readonly label: string;
  readonly waits: boolean;
  readonly levels: Levels;
}

interface Growing {
  readonly label: string;
  readonly waits: boolean;
  readonly order: readonly [number, number, number];
  readonly rows: { records: number[]; freeNs: number }[];
}

export function makeRows(data: TimelineData, grouping: TimelineGrouping): TimelineRow[] {
  const { head, beginNs, tookNs, lane } = data;
  const lanes = new Map<string, Growing>();
  const several = head.lanes.some(({ device }) => device !== head.lanes[0]?.device);
  const ofLane = head.lanes.map((one) => {
    const label = labelOf(one, grouping, several);
    let growing = lanes.get(label);
    if (!growing) lanes.set(label, (growing = { label, waits: one.waits, order: [one.device, one.waits ? 0 : 1, one.stream], rows: [] }));
    return growing;
  });
  for (let i = 0; i < data.length; i++) {
    const { rows } = ofLane[lane[i] as number] as Growing;
    const begin = beginNs[i] as number;
    let row = rows.find(({ freeNs }) => freeNs <= begin);
    if (!row && rows.length < MAX_ROWS) rows.push((row = { records: [], freeNs: 0 }));
    row ??= rows.reduce((one, other) => (other.freeNs < one.freeNs ? other : one));
    row.records.push(i);
    row.freeNs = Math.max(row.freeNs, begin + (tookNs[i] as number));
  }
  const ordered = [...lanes.values()].sort(({ order: one }, { order: other }) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
  return ordered.flatMap(({ label, waits, rows }) =>
    rows.map(({ records }, i) => ({ label: i === 0 ? label : '', waits, levels: new Levels(data, Uint32Array.from(records)) })),
  );
}

function labelOf({ device, stream, tenant, waits }: Lane, grouping: TimelineGrouping, several: boolean): string {
  const of = several ? ` of device ${device}` : '';
  if (waits) return `waited for${of}`;
  if (grouping === 'tenant') return `${tenant || 'no tenant'}${of}`;
  return `${stream === 0 ? 'default stream' : `stream ${stream}`}${of}`;
}
