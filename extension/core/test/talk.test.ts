// A conversation by voice, told by messages.

import { describe, expect, it, vi } from 'vitest';
import { TalkStore } from '../src/index.js';

const said = (heard: string, answer = '', interrupted = false) => ({ heard, answer, interrupted });
const samples = (...values: number[]): DataView[] => [new DataView(Float32Array.from(values).buffer)];

function store(): TalkStore {
  const talk = new TalkStore();
  talk.receive({ type: 'state', rate: 16000, busy: false, note: '', turns: [said('one', 'two')] }, []);
  return talk;
}

describe('TalkStore', () => {
  it('has the turns of the state, and changes of them', () => {
    const talk = store();
    const listener = vi.fn();
    talk.subscribe(listener);
    talk.receive({ type: 'turn', number: 1, busy: true, note: '', turn: said('three') }, []);
    talk.receive({ type: 'turn', number: 1, busy: false, note: 'a note', turn: said('three', 'four', true) }, []);
    expect(talk.turns).toEqual([said('one', 'two'), said('three', 'four', true)]);
    expect([talk.busy, talk.note, talk.rate]).toEqual([false, 'a note', 16000]);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it('keeps the turns where nothing was understood', () => {
    const talk = store();
    talk.receive({ type: 'turn', number: 1, busy: false, note: 'Nothing was understood.', turn: null }, []);
    expect(talk.turns).toHaveLength(1);
    expect(talk.note).toBe('Nothing was understood.');
  });

  it('joins the sentences of the answer that is awaited, and begins anew with the next', () => {
    const talk = store();
    talk.await(7);
    talk.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, samples(0.5, 0.25));
    talk.receive({ type: 'sound', id: 7, rate: 24000, at: 2 }, samples(-0.5));
    expect(talk.sound?.frames).toBe(3);
    expect(talk.sound?.chunks.read(0, 3)).toEqual([Float32Array.of(0.5, 0.25, -0.5)]);
    talk.await(8);
    expect(talk.sound).toBeNull();
    talk.receive({ type: 'sound', id: 8, rate: 24000, at: 0 }, samples(1));
    expect(talk.sound?.frames).toBe(1);
  });

  it('drops what comes of another answer, of one that was silenced, and without samples', () => {
    const talk = store();
    talk.await(7);
    talk.receive({ type: 'sound', id: 6, rate: 24000, at: 0 }, samples(1));
    talk.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, []);
    talk.silence();
    talk.receive({ type: 'sound', id: 7, rate: 24000, at: 0 }, samples(1));
    expect(talk.sound).toBeNull();
  });

  it('leaves aside what is no message of it', () => {
    const talk = store();
    const listener = vi.fn();
    talk.subscribe(listener);
    for (const content of [null, 'state', {}, { type: 'frame' }]) talk.receive(content, []);
    expect(listener).not.toHaveBeenCalled();
    expect(talk.turns).toHaveLength(1);
  });
});
