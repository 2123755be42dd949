// Test helper: builds telemetry frames of version 1, field by field as docs/seams.md lists them.

import { Kind } from '../src/records.js';

export interface RecordFields {
  kind: number;
  device?: number;
  seq?: number;
  t?: number;
  stream?: number;
  tenant?: number;
  name?: number;
  a?: number;
  b?: number;
  c?: number;
  cell?: number;
  line?: number;
}

export interface FrameFields {
  session?: bigint;
  version?: number;
  lost?: number;
  /** In the order of the table in docs/seams.md; missing ones are 0. */
  gauges?: number[];
  records?: RecordFields[];
  names?: [number, string][];
}

/** Numbers records from `firstSeq`, closes with a GAUGE record as the kernel does, and returns the bytes. */
export function encodeFrame(firstSeq: number, timeNs: number, fields: FrameFields = {}): DataView {
  const gauges = fields.gauges ?? [];
  const [used = 0, reserved = 0] = gauges;
  const launches = (gauges[8] ?? 0) + (gauges[9] ?? 0);
  const records: RecordFields[] = [
    ...(fields.records ?? []),
    { kind: Kind.GAUGE, t: timeNs, a: used, b: reserved, c: launches },
  ];
  const names = (fields.names ?? []).map(([id, text]) => ({ id, utf8: new TextEncoder().encode(text) }));
  const nameBytes = names.reduce((sum, { utf8 }) => sum + 8 + Math.ceil(utf8.length / 4) * 4, 4);
  const view = new DataView(new ArrayBuffer(64 + 128 + records.length * 64 + nameBytes));
  const u64 = (at: number, value: number | bigint): void => view.setBigUint64(at, BigInt(value), true);

  view.setUint32(0, 0x314b4750, true);
  view.setUint16(4, fields.version ?? 1, true);
  view.setUint16(6, 64, true);
  view.setUint16(8, 64, true);
  view.setUint16(10, 16, true);
  view.setUint32(12, records.length, true);
  u64(16, fields.session ?? 7n);
  u64(24, firstSeq);
  u64(32, firstSeq + records.length);
  u64(40, fields.lost ?? 0);
  u64(48, timeNs);
  u64(56, firstSeq + records.length - 1);
  gauges.forEach((value, i) => u64(64 + i * 8, value));
  records.forEach((record, i) => {
    const at = 192 + i * 64;
    u64(at, record.seq ?? firstSeq + i);
    u64(at + 8, record.t ?? timeNs);
    view.setUint16(at + 16, record.kind, true);
    view.setUint16(at + 18, record.device ?? 0, true);
    view.setUint32(at + 20, record.stream ?? 0, true);
    view.setUint32(at + 24, record.tenant ?? 0, true);
    view.setUint32(at + 28, record.name ?? 0, true);
    u64(at + 32, record.a ?? 0);
    u64(at + 40, record.b ?? 0);
    u64(at + 48, record.c ?? 0);
    view.setUint32(at + 56, record.cell ?? 0, true);
    view.setUint32(at + 60, record.line ?? 0, true);
  });
  let at = 192 + records.length * 64;
  view.setUint32(at, names.length, true);
  at += 4;
  for (const { id, utf8 } of names) {
    view.setUint32(at, id, true);
    view.setUint32(at + 4, utf8.length, true);
    new Uint8Array(view.buffer, at + 8, utf8.length).set(utf8);
    at += 8 + Math.ceil(utf8.length / 4) * 4;
  }
  return view;
}
