import { expect, test } from 'vitest';
import { Links, Store } from '../src/index.js';
import { Kind } from '../src/records.js';
import { encodeFrame } from './encode.js';

const link = (from: number, to: number, directBytes: number, hostBytes = 0) => ({ from, to, kind: 'nvlink', lanes: 18, bytesPerS: 478e9, directBytes, hostBytes });

test('rates are bytes between two reports over their time', () => {
  const links = new Links();
  links.apply([link(0, 1, 1000)], 1e9);
  expect(links.rate(link(0, 1, 0))).toBe(0); // nothing to compare with
  links.apply([link(0, 1, 2500, 500), link(1, 0, 40)], 3e9);
  expect(links.rate(link(0, 1, 0))).toBe(1000);
  expect(links.rate(link(1, 0, 0))).toBe(0); // new
  links.apply([link(0, 1, 100)], 2e9); // another process, or a replay from its beginning
  expect(links.rate(link(0, 1, 0))).toBe(0);
});

test('a store keeps the newest report and leaves out what is no link', () => {
  const store = new Store();
  store.receive({ type: 'links', tNs: 1e9, rows: [link(0, 1, 5), { from: 0 }, null] }, []);
  expect(store.links.rows).toEqual([link(0, 1, 5)]);
  expect(store.dropped).toBe(2);
});

test('records of other devices change nothing of the memory that is shown', () => {
  const store = new Store();
  store.receive({ type: 'snapshot', seq: 1, tNs: 1, device: 'device 1', place: 1, blocks: [], segments: [], tasks: [] }, []);
  const alloc = (device: number, address: number) => ({ kind: Kind.ALLOC, device, a: address, b: 512, c: address });
  store.receive({ type: 'frame' }, [encodeFrame(1, 1e9, { records: [alloc(0, 4096), alloc(1, 8192), { kind: Kind.GAUGE, device: 0, a: 7 }] })]);
  expect(store.memory.byAddress.map(({ address }) => address)).toEqual([8192]);
  expect(store.history.length).toBe(0); // this frame's own gauges are device 0's, too
});
