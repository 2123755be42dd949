// What the main thread's processor time went to, from a sampled profile and the trace of the page's style and layout.

/** As Chromium's devtools give them (Profiler.Profile), as far as it is read. Times are in microseconds, on one clock with the trace's. */
export interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame; readonly children?: readonly number[] }[];
  readonly samples?: readonly number[];
}

interface Frame {
  readonly functionName: string;
  readonly url: string;
}

/** An event of the trace. `tdur`: its time on the thread's own clock, microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly tid: number;
  readonly pid: number;
  readonly tdur?: number;
  readonly args: {
    readonly elementCount?: number;
    readonly beginData?: { readonly dirtyObjects?: number; readonly stackTrace?: readonly Frame[] };
  };
}

/** Style or layout that one function asked for: how often, of how many elements or boxes, and what it took. */
export interface Drawn {
  readonly times: number;
  readonly objects: number;
  readonly ms: number;
}

export interface Spent {
  /** Milliseconds with a function of the extension on the stack, whatever it called. */
  readonly own: number;
  /** Milliseconds in which the lab's editors parse and colour, but for what is the extension's own. */
  readonly language: number;
  /** Style and layout that no function of the extension asked for, by the function that did. */
  readonly drawn: ReadonlyMap<string, Drawn>;
}

/** Methods of CodeMirror below which text is parsed (ParseContext) and coloured (TreeHighlighter). */
const LANGUAGE = new Set(['work', 'buildDeco']);
/** No function runs: the thread waits, or draws by itself, which a sample does not tell apart. */
const IDLE = new Set(['(idle)', '(program)']);
const DRAWING = ['UpdateLayoutTree', 'Layout'];

/**
 * `cpu`: milliseconds of the thread's processor time. The samples with a function share all of it evenly, also what the thread drew by itself, so
 * that what is said of functions is rather too much. `own`: part of the addresses of the extension's files.
 */
export function spent({ nodes, samples = [] }: Profile, events: readonly TraceEvent[], cpu: number, own: string): Spent {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const isOwn = ({ url }: Frame): boolean => url.includes(own);
  const below = (id: number, test: (frame: Frame) => boolean): boolean => {
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      if (test(frames.get(at) as Frame)) return true;
    }
    return false;
  };
  const counts = { own: 0, language: 0, other: 0 };
  const kinds = new Map(
    nodes.map(({ id, callFrame }) => {
      if (IDLE.has(callFrame.functionName)) return [id, null];
      if (below(id, isOwn)) return [id, 'own' as const];
      return [id, below(id, ({ functionName }) => LANGUAGE.has(functionName)) ? ('language' as const) : ('other' as const)];
    }),
  );
  for (const id of samples) {
    const kind = kinds.get(id);
    if (kind) counts[kind]++;
  }
  const perSample = cpu / (counts.own + counts.language + counts.other);

  const drawn = new Map<string, Drawn>();
  for (const { name, tdur, args } of ofBusiestThread(events.filter((one) => DRAWING.includes(one.name) && one.tdur !== undefined))) {
    const stack = args.beginData?.stackTrace ?? [];
    if (stack.some(isOwn)) continue;
    const place = `${name} ${stack[0]?.functionName ?? ''}`;
    const { times, objects, ms } = drawn.get(place) ?? { times: 0, objects: 0, ms: 0 };
    drawn.set(place, {
      times: times + 1,
      objects: objects + (args.elementCount ?? args.beginData?.dirtyObjects ?? 0),
      ms: ms + (tdur ?? 0) / 1000,
    });
  }
  return { own: counts.own * perSample, language: counts.language * perSample, drawn };
}

/** The other pages are in the trace, too. */
function ofBusiestThread(events: readonly TraceEvent[]): readonly TraceEvent[] {
  const threads = new Map<string, TraceEvent[]>();
  for (const event of events) {
    const thread = `${event.pid} ${event.tid}`;
    const mine = threads.get(thread) ?? [];
    mine.push(event);
    threads.set(thread, mine);
  }
  return [...threads.values()].sort((x, y) => y.length - x.length)[0] ?? [];
}

/**
 * At most how many milliseconds more style and layout took in each of `more` than in its like of `less`. What was drawn is counted; its
 * price is that of all of them together, so that a machine that is slower for one of two makes no difference between them. A place
 * whose price grows with its times and with its objects cannot cost more than the one of both that has grown more.
 */
export function drawnMore(more: readonly Spent[], less: readonly Spent[]): number[] {
  const price = new Map<string, Drawn>();
  for (const [place, one] of [...more, ...less].flatMap(({ drawn }) => [...drawn])) {
    const { times, objects, ms } = price.get(place) ?? NOTHING;
    price.set(place, { times: times + one.times, objects: objects + one.objects, ms: ms + one.ms });
  }
  return more.map(({ drawn }, at) => {
    let sum = 0;
    for (const [place, whole] of price) {
      const [a, b] = [drawn.get(place) ?? NOTHING, less[at]?.drawn.get(place) ?? NOTHING];
      const [times, objects] = [(a.times - b.times) / whole.times, whole.objects ? (a.objects - b.objects) / whole.objects : -Infinity];
      sum += Math.max(times, objects) * whole.ms;
    }
    return sum;
  });
}

const NOTHING: Drawn = { times: 0, objects: 0, ms: 0 };
