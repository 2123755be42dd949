// The browser's outputs: one a rate for all players of a page, opened before somebody presses Play.
//
// The first context of a page takes some hundred milliseconds to make, since the browser starts what it plays with.

/** An output that plays nothing for so long is let go of. */
const REST_MS = 20_000;

/** A player that uses an output. */
export interface User {
  readonly playing: boolean;
}

interface Shared {
  readonly context: AudioContext;
  readonly users: Set<User>;
  resting: number;
}

declare global {
  /** Every widget's module is loaded by itself: what a page has once is kept here. */
  var pygpukitOutputs: Map<number, Shared> | undefined; // eslint-disable-line no-var
}

const all = (): Map<number, Shared> => (globalThis.pygpukitOutputs ??= new Map<number, Shared>());

/** The context of a rate, made where there is none. Throws where the browser has no output of that rate. */
export function opened(rate: number, user: User): AudioContext {
  let shared = all().get(rate);
  if (!shared) {
    shared = { context: new AudioContext({ sampleRate: rate, latencyHint: 'interactive' }), users: new Set(), resting: 0 };
    all().set(rate, shared);
  }
  shared.users.add(user);
  rest(shared);
  return shared.context;
}

/** It is closed with its last user. */
export function left(rate: number, user: User): void {
  const shared = all().get(rate);
  if (!shared?.users.delete(user) || shared.users.size > 0) return;
  window.clearTimeout(shared.resting);
  all().delete(rate);
  void shared.context.close();
}

function rest(shared: Shared): void {
  window.clearTimeout(shared.resting);
  shared.resting = window.setTimeout(() => {
    if ([...shared.users].some(({ playing }) => playing)) rest(shared);
    else void shared.context.suspend();
  }, REST_MS);
}
