// The works of a profile as columns: what the kernel sends in chunks, in the order of their beginnings.

/** Records of a chunk; the last one has fewer. */
export const CHUNK = 65536;
const MAX_RECORDS = 4_000_000;
const MAX_WIDTH = 6; // bytes of a number: 2^48 ns are three days

/** A stream of a device as a tenant used it; waits: what the device waited for. */
export interface Lane {
  readonly device: number;
  readonly stream: number;
  readonly tenant: string;
  readonly waits: boolean;
}

export interface Place {
  readonly cell: string;
  readonly line: number;
  /** What is known of a wait beside its cause. */
  readonly detail: string;
}

export interface Head {
  readonly count: number;
  readonly spanNs: number;
  readonly lanes: readonly Lane[];
  readonly names: readonly string[];
  readonly places: readonly Place[];
  readonly notes: readonly string[];
}

/** The first message of a timeline; null for anything else. */
export function readHead(content: unknown): Head | null {
  if (!isObject(content) || content['type'] !== 'timeline') return null;
  const { count, span, lanes, names, places, notes } = content;
  if (!isWhole(count) || count > MAX_RECORDS || typeof span !== 'number' || !(span > 0)) return null;
  if (!isList(lanes, isLane) || !isList(names, isText) || !isList(places, isPlace) || !isList(notes, isText)) return null;
  return {
    count,
    spanNs: span,
    names,
    notes,
    lanes: lanes.map(([device, stream, tenant, waits]) => ({ device, stream, tenant, waits: waits === 1 })),
    places: places.map(([cell, line, detail]) => ({ cell, line, detail })),
  };
}

export class TimelineData {
  /** How many records are here. */
  length = 0;
  readonly beginNs: Float64Array;
  readonly tookNs: Float64Array;
  readonly name: Uint32Array;
  readonly lane: Uint32Array;
  readonly place: Uint32Array;

  constructor(readonly head: Head) {
    this.beginNs = new Float64Array(head.count);
    this.tookNs = new Float64Array(head.count);
    this.name = new Uint32Array(head.count);
    this.lane = new Uint32Array(head.count);
    this.place = new Uint32Array(head.count);
  }

  get complete(): boolean {
    return this.length === this.head.count;
  }

  /** The chunk that is to come next. */
  get wanted(): number {
    return this.length / CHUNK;
  }

  /**
   * Takes the next chunk: five columns, each the bytes of a number and then its bytes by significance; beginnings as steps from the one
   * before. Throws an Error for bytes that are not of that form or name what is not there.
   */
  add(bytes: Uint8Array): void {
    const first = this.length;
    const count = Math.min(CHUNK, this.head.count - first);
    const { lanes, names, places } = this.head;
    let at = 0;
    const column = (target: Float64Array | Uint32Array, below: number): void => {
      const width = bytes[at++] ?? MAX_WIDTH + 1;
      if (width > MAX_WIDTH || at + width * count > bytes.length) throw new Error('a chunk of the timeline is cut off');
      for (let i = 0; i < count; i++) {
        let value = 0;
        for (let plane = width - 1; plane >= 0; plane--) value = value * 256 + (bytes[at + plane * count + i] as number);
        if (value >= below) throw new Error('a record of the timeline names what is not there');
        target[first + i] = value;
      }
      at += width * count;
    };
    column(this.beginNs, Infinity);
    column(this.tookNs, Infinity);
    column(this.name, names.length);
    column(this.lane, lanes.length);
    column(this.place, places.length);
    if (at !== bytes.length) throw new Error('a chunk of the timeline is too long');
    let last = first > 0 ? (this.beginNs[first - 1] as number) : 0;
    for (let i = first; i < first + count; i++) this.beginNs[i] = last += this.beginNs[i] as number;
    this.length += count;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList<T>(value: unknown, check: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(check);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isLane(value: unknown): value is [number, number, string, 0 | 1] {
  return Array.isArray(value) && isWhole(value[0]) && isWhole(value[1]) && isText(value[2]) && (value[3] === 0 || value[3] === 1);
}

function isPlace(value: unknown): value is [string, number, string] {
  return Array.isArray(value) && isText(value[0]) && isWhole(value[1]) && isText(value[2]);
}
