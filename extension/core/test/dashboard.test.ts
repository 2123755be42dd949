// What the dashboards compute: shares, latencies, fragmentation, history, task facts, requests.

import { describe, expect, it } from 'vitest';
import { Channel, Evictions, History, Kind, Phase, Recent, Shares, Store, fragmentation, histogram, summarise } from '../src/index.js';
import { encodeFrame } from './encode.js';

const S = 1e9;
const MiB = 2 ** 20;
const row = (number: number, more: object = {}): object => ({
  ...{ number, name: `t${number}`, phase: 'Running', submittedNs: S, startedNs: 2 * S, finishedNs: 0 },
  ...more,
});

/** Numbers from 0 to 1 that are the same each time. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

describe('Shares', () => {
  it('adds up what was busy in each second, split at the borders', () => {
    const shares = new Shares();
    shares.add('host', 'a', 10.25 * S, 0.5 * S);
    shares.add('host', 'b', 10.75 * S, 0.5 * S);
    expect([shares.share('a', 0), shares.share('a', 1), shares.share('b', 0)]).toEqual([0.25, 0.25, 0.5]);
    shares.advance(11 * S);
    expect(shares.share('a', 1)).toBe(0.25);
    shares.advance(200 * S);
    expect(shares.share('a', 1)).toBe(0);
  });

  it('divides by what was busy where streams overlap, so that shares never exceed one', () => {
    const shares = new Shares();
    for (const tenant of ['a', 'b', 'c', 'd']) shares.add('host', tenant, 6 * S, S);
    shares.advance(6 * S);
    expect(shares.share('a', 1)).toBe(0.25);
  });

  it('lets measured device time replace host time, for good', () => {
    const shares = new Shares();
    shares.add('host', 'a', 5 * S, S / 2);
    shares.add('device', 'a', 5.5 * S, S / 4);
    shares.add('host', 'a', 5.9 * S, S / 2);
    expect([shares.source, shares.share('a', 0)]).toEqual(['device', 0.25]);
  });

  it('agrees with a plain sum over random stretches', () => {
    const random = numbers(3);
    const shares = new Shares();
    const stretches: [number, number][] = [];
    let end = 100 * S;
    for (let i = 0; i < 300; i++) {
      const duration = random.next().value * 0.05 * S;
      end += duration + random.next().value * 0.05 * S;
      stretches.push([end - duration, end]);
      shares.add('host', 'a', end, duration);
    }
    shares.advance(end);
    for (let age = 1; age < 10; age++) {
      const from = (Math.floor(end / S) - age) * S;
      const sum = stretches.reduce((total, [start, stop]) => total + Math.max(0, Math.min(stop, from + S) - Math.max(start, from)), 0);
      expect(shares.share('a', age)).toBeCloseTo(sum / S, 9);
    }
  });
});

describe('latency', () => {
  it('has exact percentiles and buckets that double', () => {
    const task = (wait: number, run: number): never =>
      ({ spans: [{ phase: Phase.Queued, startNs: S, endNs: S + wait }, { phase: Phase.Running, startNs: S + wait, endNs: S + wait + run }] }) as never;
    const [waited, ran] = summarise(Array.from({ length: 100 }, (_, i) => task((i + 1) * 1e6, 2e9)));
    expect([waited.samples, waited.p50Ns, waited.p99Ns, waited.maxNs]).toEqual([100, 50e6, 99e6, 100e6]);
    expect([ran.samples, ran.p50Ns, ran.counts[20]]).toEqual([100, 2e9, 100]);
    expect(histogram([0, 500, 1000, 1999, 2000, 1e18]).slice(0, 2)).toEqual(Uint32Array.of(4, 1));
    expect(histogram([1e18]).at(-1)).toBe(1);
  });

  it('leaves out who has not begun, and the run time of who runs', () => {
    const queued = { spans: [{ phase: Phase.Queued, startNs: 1, endNs: 0 }] } as never;
    const running = { spans: [{ phase: Phase.Queued, startNs: 1, endNs: 3 }, { phase: Phase.Running, startNs: 3, endNs: 0 }] } as never;
    expect(summarise([queued, running]).map(({ samples }) => samples)).toEqual([1, 0]);
  });
});

describe('memory', () => {
  it('says how much of the free space one allocation could not have', () => {
    const block = (address: number, bytes: number): never => ({ address, bytes }) as never;
    expect(fragmentation([[0, 100]], [])).toBe(0);
    expect(fragmentation([[0, 100]], [block(0, 100)])).toBe(0);
    expect(fragmentation([[0, 100]], [block(40, 20)])).toBe(0.5);
    expect(fragmentation([[0, 100], [1000, 100]], [block(0, 100), block(1000, 40), block(1080, 20)])).toBeCloseTo(1 - 40 / 40, 9);
    expect(fragmentation([[0, 100], [1000, 100]], [block(1000, 40)])).toBeCloseTo(1 - 100 / 160, 9);
  });

  it('takes names that come after the allocation, for the block they are meant for', () => {
    const store = new Store();
    const records = [{ kind: Kind.ALLOC, a: 4096, b: 64, c: 9 }];
    store.receive({ type: 'frame' }, [encodeFrame(1, S, { records, names: [[5, 'late']] })]);
    store.receive({ type: 'names', rows: [[4096, 8, 5], ['x'], null] }, []);
    expect(store.memory.byAddress[0]?.name).toBe(0);
    store.receive({ type: 'names', rows: [[4096, 9, 5]] }, []);
    expect(store.nameOf(store.memory.byAddress[0]?.name ?? 0)).toBe('late');
  });

  it('logs evictions, restores and what did not fit', () => {
    const store = new Store();
    const records = [{ kind: Kind.EVICT, a: 1, b: MiB }, { kind: Kind.RESTORE, a: 1, b: MiB }, { kind: Kind.OUT_OF_MEMORY, a: 7 * MiB }];
    store.receive({ type: 'frame' }, [encodeFrame(1, S, { records })]);
    expect(store.memoryEvents.all.map(({ kind, bytes }) => [kind, bytes])).toEqual([[3, MiB], [4, MiB], [7, 7 * MiB]]);
  });
});

describe('evictions', () => {
  const [EVICT, RESTORE, FREE] = [Kind.EVICT, Kind.RESTORE, Kind.FREE];
  const names: [number, string][] = [[1, 'fit'], [2, 'serve']];
  const event = (kind: number, t: number, c: number, b: number, tenant = 1): object => ({ kind, t, a: 4096 * c, b, c, tenant });
  const frame = (store: Store, first: number, t: number, records: object[]): void =>
    store.receive({ type: 'frame' }, [encodeFrame(first, t, { records: records as never, names })]);

  it('are stretches of a tenant from the first block that goes to the last that comes back or is freed', () => {
    const store = new Store();
    frame(store, 1, 9 * S, [
      event(EVICT, S, 1, MiB),
      event(EVICT, 2 * S, 2, 2 * MiB),
      event(EVICT, 2 * S, 3, MiB, 2),
      event(EVICT, 2 * S, 4, MiB, 0),
      event(RESTORE, 3 * S, 1, MiB),
      event(RESTORE, 3 * S, 9, MiB),
      event(FREE, 4 * S, 2, 2 * MiB),
      event(EVICT, 6 * S, 1, MiB),
    ]);
    expect(store.evictions.of('fit')).toEqual([{ startNs: S, endNs: 4 * S, bytes: 3 * MiB }, { startNs: 6 * S, endNs: 0, bytes: MiB }]);
    expect(store.evictions.of('serve')).toEqual([{ startNs: 2 * S, endNs: 0, bytes: MiB }]);
    expect(['fit', 'serve', ''].map((tenant) => store.evictions.bytesOf(tenant))).toEqual([MiB, MiB, 0]);
    store.receive({ type: 'frame' }, [encodeFrame(1, S, { session: 8n })]); // the kernel was restarted
    expect(store.evictions.of('fit')).toEqual([]);
  });

  it('are those of a snapshot where records were lost, and of the records where they were not', () => {
    const store = new Store();
    const block = (id: number, tenant: number, resident: number): number[] => [4096 * id, MiB, id, tenant, 0, 0, 0, resident];
    store.receive({ type: 'snapshot', seq: 10, blocks: [block(1, 1, 0), block(2, 2, 0), block(3, 1, 1)], segments: [], tasks: [] }, []);
    frame(store, 8, 3 * S, [event(EVICT, S, 3, MiB), event(EVICT, 2 * S, 1, MiB)]); // the frame's gauge is record 10
    expect(store.evictions.of('fit')).toEqual([{ startNs: S, endNs: 0, bytes: 2 * MiB }]);
    expect(store.evictions.bytesOf('fit')).toBe(MiB); // that block 3 came back was lost
    expect(store.evictions.of('serve')).toEqual([{ startNs: 3 * S, endNs: 0, bytes: MiB }]);
    frame(store, 11, 5 * S, [event(RESTORE, 4 * S, 1, MiB), event(EVICT, 5 * S, 2, MiB, 2)]);
    expect([store.evictions.of('fit')[0]?.endNs, store.evictions.bytesOf('serve')]).toEqual([4 * S, MiB]);
  });

  it('take a bounded room: the newest stretches of the newest tenants', () => {
    const evictions = new Evictions();
    evictions.begin({ address: 1, tenant: 'held', bytes: 1 }, 1);
    for (let n = 1; n <= 200; n++) {
      for (const tenant of ['busy', `tenant ${n}`]) {
        evictions.begin({ address: 2, tenant, bytes: 1 }, n);
        evictions.end(2, n);
      }
    }
    expect(evictions.of('held')).toEqual([{ startNs: 1, endNs: 0, bytes: 1 }]);
    expect([1, 100, 200].map((n) => evictions.of(`tenant ${n}`).length)).toEqual([0, 0, 1]);
    expect([evictions.of('busy').length, evictions.of('busy').at(-1)?.startNs]).toEqual([64, 200]);
  });
});

describe('History', () => {
  const bytes = (samples: number[][]): DataView => new DataView(Float64Array.from(samples.flat()).buffer);

  it('puts the past before what is here, and in its gaps, without a double', () => {
    const history = new History();
    history.push(50, 1, 2, 3);
    history.push(60, 4, 5, 6);
    history.load(bytes([[30, 7, 7, 7], [40, 8, 8, 8], [50, 9, 9, 9], [55, 6, 6, 6], [70, 9, 9, 9]]));
    const samples = [[30, 7], [40, 8], [50, 1], [55, 6], [60, 4], [70, 9]];
    expect(Array.from({ length: history.length }, (_, i) => [history.timeNs(i), history.used(i)])).toEqual(samples);
    history.load(bytes([[30, 7, 7, 7]]));
    expect(history.length).toBe(samples.length);
  });

  it('knows where nothing was recorded, and no rate there', () => {
    const history = new History();
    for (const [t, launches] of [[1, 0], [2, 10], [9, 500], [10, 510], [11, 510]] as const) history.push(t * S, 0, 0, launches);
    expect([0, 1, 2, 3].map((i) => history.isAfterGap(i))).toEqual([false, false, true, false]);
    expect([1, 2, 3].map((i) => history.launchRate(i))).toEqual([10, 0, 10]);
    expect(history.launchedNs).toBe(10 * S);
  });

  it('takes whatever bytes there are', () => {
    const history = new History();
    history.load(new DataView(new ArrayBuffer(31)));
    history.load(bytes([[Number.NaN, 1, 1, 1], [Infinity, 1, 1, 1]]));
    expect(history.length).toBe(0);
  });
});

describe('an allocation that did not fit', () => {
  it('is told with the gaps where enough was free in pieces, and only there', () => {
    const store = new Store();
    const at = (i: number): number => 2 ** 32 + i * MiB;
    const alloc = (i: number, count: number) => ({ kind: Kind.ALLOC, a: at(i), b: count * MiB });
    const lack = (count: number) => ({ kind: Kind.OUT_OF_MEMORY, a: count * MiB });
    const records = [{ kind: Kind.SEGMENT_MAP, a: at(0), b: 8 * MiB }, alloc(0, 2), alloc(4, 2), lack(3), lack(5), lack(2)];
    store.receive({ type: 'frame' }, [encodeFrame(1, S, { records })]);
    expect(store.memoryEvents.all.map(({ scattered }) => scattered)).toEqual([{ free: 4 * MiB, largest: 2 * MiB }, undefined, undefined]);
  });
});

describe('task facts', () => {
  it('give a task its class, its promise and the times in which its launches waited for their turn', () => {
    const store = new Store();
    const facts = (tNs: number, more: object): void => store.receive({ type: 'tasks', tNs, rows: [row(1, { id: 'x', policy: 'Guaranteed', sharePpm: 250_000, ...more })] }, []);
    facts(3 * S, { paced: 0, waitedNs: 0, gpuNs: 0 });
    facts(4 * S, { paced: 2, waitedNs: S / 2, gpuNs: S / 4 });
    facts(5 * S, { paced: 5, waitedNs: S, gpuNs: S / 2 });
    const task = store.tasks.get(1);
    expect(task?.facts?.policy).toBe('Guaranteed');
    expect(task?.waits).toEqual([{ phase: Phase.Running, startNs: 3 * S, endNs: 5 * S }]);
    expect([task?.throttled, task?.kept]).toEqual([[], 'turn']);
    expect([store.shares.source, store.shares.share('t1', 1)]).toEqual(['device', 0.25]);
  });

  it('say nothing of waits that take next to none of the time', () => {
    const store = new Store();
    const facts = (tNs: number, more: object): void => store.receive({ type: 'tasks', tNs, rows: [row(1, more)] }, []);
    facts(3 * S, { paced: 0, waitedNs: 0, throttledNs: 0 });
    facts(4 * S, { paced: 90, waitedNs: S / 100, throttledNs: 0 });
    expect([store.tasks.get(1)?.waits, store.tasks.get(1)?.kept]).toEqual([[], '']);
    facts(5 * S, { paced: 90, waitedNs: S / 100, throttledNs: S / 2 });
    expect([store.tasks.get(1)?.throttled, store.tasks.get(1)?.kept]).toEqual([[], 'limit']);
  });

  it('are joined by records of the stretches in which a limit held it', () => {
    const store = new Store();
    store.receive({ type: 'tasks', tNs: 3 * S, rows: [row(1)] }, []);
    const hold = (from: number, to: number, held: number) => ({ kind: Kind.THROTTLE, a: 1, b: Math.round(from * S), c: Math.round(held * S), t: Math.round(to * S) });
    const records = [hold(3, 3.1, 0.08), hold(3.105, 3.2, 0.08), hold(4, 4.1, 0.05), hold(5, 5.1, 0.001)];
    store.receive({ type: 'frame' }, [encodeFrame(1, 6 * S, { records })]);
    const seconds = store.tasks.get(1)?.throttled.map(({ startNs, endNs }) => [startNs / S, endNs / S]);
    expect(seconds).toEqual([[3, 3.2], [4, 4.1]]);
  });

  it('count all device time of a task that began and ended between two reports, and none from before the first', () => {
    const store = new Store();
    const short = (tNs: number, number: number, gpuNs: number): void => {
      const ended = { name: 'short', phase: 'Succeeded', submittedNs: tNs - S / 4, startedNs: tNs - S / 4, finishedNs: tNs };
      store.receive({ type: 'tasks', tNs, rows: [row(number, { ...ended, gpuNs })] }, []);
    };
    short(3.5 * S, 1, S / 4);
    short(4.5 * S, 2, S / 8);
    short(5.5 * S, 3, S / 8);
    expect([store.shares.source, ...[2, 1, 0].map((age) => store.shares.share('short', age))]).toEqual(['device', 0, 0.125, 0.125]);
  });

  it('are dropped where they have another shape', () => {
    const store = new Store();
    store.receive({ type: 'tasks', tNs: 1, rows: [null, 3, {}, row(1, { phase: 'Nowhere' }), row(2, { sharePpm: '1' }), row(3, { priority: Number.NaN })] }, []);
    store.receive({ type: 'tasks', tNs: 'x', rows: [row(4)] }, []);
    store.receive({ type: 'device', tNs: 1, source: 'x', fields: 3, processes: [] }, []);
    store.receive({ type: 'cells', rows: [{ count: 1 }] }, []);
    expect([store.tasks.all.length, store.deviceSamples.total, store.cells.length]).toEqual([0, 0, 0]);
  });

  it('connect a stream with the task that runs under its tenant', () => {
    const store = new Store();
    const records = [{ kind: Kind.TASK, a: 1, b: Phase.Admitted * 256 + Phase.Running, name: 5 }, { kind: Kind.HOST_LAUNCH, a: 1e6, tenant: 5, stream: 3 }];
    store.receive({ type: 'frame' }, [encodeFrame(1, S, { records, names: [[5, 'fit']] })]);
    expect([store.tasks.get(1)?.stream, store.shares.tenants]).toEqual([3, ['fit']]);
  });
});

describe('Channel', () => {
  it('matches answers with requests, and counts those that nobody asked for', async () => {
    const sent: { id: number; action: string }[] = [];
    const channel = new Channel((content) => sent.push(content as never));
    const [first, second] = [channel.request('pause'), channel.request('quota', { limit: 'x' })];
    expect(sent.map(({ action }) => action)).toEqual(['pause', 'quota']);
    channel.receive({ type: 'answer', id: sent[1]?.id, ok: false, error: 'no' });
    channel.receive({ type: 'answer', id: sent[0]?.id, ok: true, result: { paused: 1 } });
    await expect(first).resolves.toEqual({ paused: 1 });
    await expect(second).rejects.toThrow('no');
    for (const id of [1, 99, 'x', null]) channel.receive({ type: 'answer', id, ok: true, result: {} });
    expect([channel.dropped, channel.receive({ type: 'frame' }), channel.receive(null)]).toEqual([4, false, false]);
  });

  it('does not let requests pile up, and tells who waits when it closes', async () => {
    const channel = new Channel(() => undefined);
    const waiting = Array.from({ length: 64 }, () => channel.request('pause'));
    await expect(channel.request('pause')).rejects.toThrow('wait for the kernel');
    channel.close();
    expect((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected')).toBe(true);
  });
});

it('Recent keeps the newest', () => {
  const recent = new Recent<number>(10);
  for (let i = 0; i < 1005; i++) recent.push(i);
  expect([recent.all.length, recent.all[0], recent.all.at(-1), recent.total]).toEqual([10, 995, 1004, 1005]);
});
