// Decoder of telemetry frames, version 1 (docs/seams.md). Every offset is checked before it is read.

import { RECORD_BYTES, RecordBlock, readU64 } from './records.js';

const MAGIC = 0x314b4750; // "PGK1", little endian
const VERSION = 1;
const HEADER_BYTES = 64;
const GAUGE_COUNT = 16;
const MAX_NAME_BYTES = 4096;

/** A frame that cannot be read. The message is one sentence for the person who looks at the page. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** The figures of one tick, in bytes and counts since the process began. */
export interface Gauges {
  readonly used: number;
  readonly reserved: number;
  readonly limit: number;
  readonly cached: number;
  readonly evicted: number;
  readonly peakUsed: number;
  readonly liveBlocks: number;
  readonly segments: number;
  readonly launches: number;
  readonly hostLaunches: number;
  readonly h2dBytes: number;
  readonly d2hBytes: number;
  readonly deviceFree: number;
  readonly deviceTotal: number;
  readonly runningTasks: number;
  readonly queuedTasks: number;
}

export interface Frame {
  /** Process-wide session; another value means another kernel process. */
  readonly session: bigint;
  readonly firstSeq: number;
  readonly nextSeq: number;
  /** Records overwritten before this frame could carry them. */
  readonly lost: number;
  readonly timeNs: number;
  /** Sequence number of this frame's GAUGE record: the gauges below are that record's moment. */
  readonly gaugeSeq: number;
  readonly gauges: Gauges;
  readonly records: RecordBlock;
  readonly names: ReadonlyMap<number, string>;
}

function slice(view: DataView, at: number, bytes: number, what: string): DataView {
  if (at + bytes > view.byteLength) {
    throw new FrameError(`The telemetry frame ends inside its ${what}: ${view.byteLength} bytes, ${at + bytes} needed.`);
  }
  return new DataView(view.buffer, view.byteOffset + at, bytes);
}

/** Throws FrameError, and nothing else, for whatever bytes it is given. */
export function decodeFrame(view: DataView): Frame {
  const header = slice(view, 0, HEADER_BYTES, 'header');
  if (header.getUint32(0, true) !== MAGIC) {
    throw new FrameError('The kernel sent something that is not a telemetry frame.');
  }
  const version = header.getUint16(4, true);
  if (version !== VERSION) {
    throw new FrameError(
      `The kernel sends telemetry version ${version} and this page reads version ${VERSION}: ` +
        'restart the kernel and reload the page so that both come from one pygpukit.',
    );
  }
  const shape = [header.getUint16(6, true), header.getUint16(8, true), header.getUint16(10, true)];
  if (shape[0] !== HEADER_BYTES || shape[1] !== RECORD_BYTES || shape[2] !== GAUGE_COUNT) {
    throw new FrameError(`The telemetry frame has sizes ${shape.join(', ')} where version 1 has 64, 64, 16.`);
  }
  const count = header.getUint32(12, true);
  const gauges = slice(view, HEADER_BYTES, GAUGE_COUNT * 8, 'gauges');
  const recordsAt = HEADER_BYTES + GAUGE_COUNT * 8;
  const records = slice(view, recordsAt, count * RECORD_BYTES, 'records');
  return {
    session: header.getBigUint64(16, true),
    firstSeq: readU64(header, 24),
    nextSeq: readU64(header, 32),
    lost: readU64(header, 40),
    timeNs: readU64(header, 48),
    gaugeSeq: readU64(header, 56),
    gauges: decodeGauges(gauges),
    records: new RecordBlock(records, count),
    names: decodeNames(view, recordsAt + count * RECORD_BYTES),
  };
}

function decodeGauges(view: DataView): Gauges {
  const at = (index: number): number => readU64(view, index * 8);
  return {
    used: at(0),
    reserved: at(1),
    limit: at(2),
    cached: at(3),
    evicted: at(4),
    peakUsed: at(5),
    liveBlocks: at(6),
    segments: at(7),
    launches: at(8),
    hostLaunches: at(9),
    h2dBytes: at(10),
    d2hBytes: at(11),
    deviceFree: at(12),
    deviceTotal: at(13),
    runningTasks: at(14),
    queuedTasks: at(15),
  };
}

function decodeNames(view: DataView, start: number): Map<number, string> {
  const names = new Map<number, string>();
  const count = slice(view, start, 4, 'names').getUint32(0, true);
  const utf8 = new TextDecoder();
  let at = start + 4;
  // Each entry takes at least 8 bytes, so a lying count ends in FrameError after at most byteLength / 8 turns.
  for (let i = 0; i < count; i++) {
    const entry = slice(view, at, 8, 'names');
    const bytes = entry.getUint32(4, true);
    const text = slice(view, at + 8, bytes, 'names');
    // A longer name is cut: the table is for labels.
    const shown = new Uint8Array(text.buffer, text.byteOffset, Math.min(bytes, MAX_NAME_BYTES));
    names.set(entry.getUint32(0, true), utf8.decode(shown));
    at += 8 + Math.ceil(bytes / 4) * 4;
  }
  return names;
}
