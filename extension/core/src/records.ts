// Event records (64 bytes, little endian) read in place: no object is made per record.

export const RECORD_BYTES = 64;

/** Record kinds that a page knows; others are skipped. */
export const Kind = {
  ALLOC: 1,
  FREE: 2,
  EVICT: 3,
  RESTORE: 4,
  SEGMENT_MAP: 5,
  SEGMENT_UNMAP: 6,
  OUT_OF_MEMORY: 7,
  LAUNCH: 16,
  HOST_LAUNCH: 17,
  COPY: 18,
  TASK: 32,
  THROTTLE: 35,
  COMPILE: 48,
  CELL_BEGIN: 64,
  CELL_END: 65,
  GAUGE: 80,
} as const;

/**
 * A 64-bit field as a number. Addresses, byte counts, times and sequence numbers stay below 2^53;
 * a larger value loses low bits, never its magnitude.
 */
export function readU64(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 4294967296 + view.getUint32(at, true);
}

/** A run of records inside a frame. Indices are not checked: the decoder has checked the whole run. */
export class RecordBlock {
  constructor(
    private readonly view: DataView,
    readonly count: number,
  ) {}

  seq(i: number): number {
    return readU64(this.view, i * RECORD_BYTES);
  }
  timeNs(i: number): number {
    return readU64(this.view, i * RECORD_BYTES + 8);
  }
  kind(i: number): number {
    return this.view.getUint16(i * RECORD_BYTES + 16, true);
  }
  device(i: number): number {
    return this.view.getUint16(i * RECORD_BYTES + 18, true);
  }
  stream(i: number): number {
    return this.view.getUint32(i * RECORD_BYTES + 20, true);
  }
  tenant(i: number): number {
    return this.view.getUint32(i * RECORD_BYTES + 24, true);
  }
  name(i: number): number {
    return this.view.getUint32(i * RECORD_BYTES + 28, true);
  }
  a(i: number): number {
    return readU64(this.view, i * RECORD_BYTES + 32);
  }
  b(i: number): number {
    return readU64(this.view, i * RECORD_BYTES + 40);
  }
  c(i: number): number {
    return readU64(this.view, i * RECORD_BYTES + 48);
  }
  cell(i: number): number {
    return this.view.getUint32(i * RECORD_BYTES + 56, true);
  }
  line(i: number): number {
    return this.view.getUint32(i * RECORD_BYTES + 60, true);
  }
}
