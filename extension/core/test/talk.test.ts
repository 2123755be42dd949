// A conversation by voice, told by messages.

import { describe, expect, it, vi } from 'vitest';
import { TalkStore } from '../src/index.js';

const said = (heard: string, answer = '', interrupted = false) => ({ heard, answer, interrupted });
const samples = (...values: number[]): DataView[] => [new DataView(Float32Array.from(values).buffer)];

function store(): TalkStore {
  const made = new TalkStore();
  made.receive({ type: 'state', rate: 16000, busy: false, note: '', turns: [said('one', 'two')] }, []);
  return made;
}

describe('TalkStore', () => {
  it('has the turns of the state, and changes of them', () => {
    const made = store();
    const listener = vi.fn();
    made.subscribe(listener);
    made.receive({ type: 'turn', number: 1, busy: true, note: '', turn: said('three') }, []);
    made.receive({ type: 'turn', number: 1, busy: false, note: 'a note', turn: said('three', 'four', true) }, []);
    expect(made.turns).toEqual([said('one', 'two'), said('three', 'four', true)]);
    expect([made.busy, made.note, made.rate]).toEqual([false, 'a note', 16000]);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it('keeps the turns where nothing was understood', () => {
    const made = store();
    made.receive({ type: 'turn', number: 1, busy: false, note: 'Nothing was understood.', turn: null }, []);
    expect(made.turns).toHaveLength(1);
    expect(made.note).toBe('Nothing was understood.');
  });

  it('joins the sentences of the answer that is awaited, and begins anew with the next', () => {
    const made = store();
    made.await(7);
    made.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, samples(0.5, 0.25));
    made.receive({ type: 'sound', id: 7, rate: 24000, at: 2 }, samples(-0.5));
    expect(made.sound?.frames).toBe(3);
    expect(made.sound?.chunks.read(0, 3)).toEqual([Float32Array.of(0.5, 0.25, -0.5)]);
    made.await(8);
    expect(made.sound).toBeNull();
    made.receive({ type: 'sound', id: 8, rate: 24000, at: 0 }, samples(1));
    expect(made.sound?.frames).toBe(1);
  });

  it('drops what comes of another answer, of one that was silenced, and without samples', () => {
    const made = store();
    made.await(7);
    made.receive({ type: 'sound', id: 6, rate: 24000, at: 0 }, samples(1));
    made.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, []);
    made.silence();
    made.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, samples(1));
    expect(made.sound).toBeNull();
  });

  it('leaves aside what is no message of it', () => {
    const made = store();
    const listener = vi.fn();
    made.subscribe(listener);
    for (const content of [null, 'state', {}, { type: 'frame' }]) made.receive(content, []);
    expect(listener).not.toHaveBeenCalled();
    expect(made.turns).toHaveLength(1);
  });
});
