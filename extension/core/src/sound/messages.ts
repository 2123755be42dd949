// What the kernel sends to a player, read from untyped messages.

export interface Sound {
  readonly type: 'sound';
  readonly rate: number;
  readonly channels: number;
  /** Samples of one channel that there are by now. */
  readonly frames: number;
  /** The first that the kernel still has. */
  readonly first: number;
  readonly ended: boolean;
  readonly autoplay: boolean;
  /** What is to be known of the samples, as sentences. */
  readonly note: string;
}

/** How a sound looks: by column the lowest and the highest sample, and levels by row and column, the highest frequency first. */
export interface Look {
  readonly type: 'look';
  readonly first: number;
  readonly frames: number;
  readonly columns: number;
  readonly rows: number;
  readonly bounds: Float32Array;
  readonly levels: Uint8Array;
  /** Red, green and blue of each of 256 levels. */
  readonly colours: Uint8Array;
}

interface Chunk {
  readonly type: 'chunk';
  readonly at: number;
  readonly frames: number;
  readonly first: number;
  readonly ended: boolean;
  /** One channel after the other. */
  readonly samples: Float32Array;
}

export type Asks = { readonly type: 'view' } | { readonly type: 'want'; readonly at: number };

const bytes = (view: DataView | undefined): Uint8Array<ArrayBuffer> =>
  view ? new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength) : new Uint8Array(0);
/** Copied, since a view into a message may begin anywhere. */
const floats = (view: DataView | undefined): Float32Array => new Float32Array(bytes(view).slice().buffer);

/** A message of our own kernel, or null where it is something else. */
export function read(content: unknown, buffers: readonly DataView[]): Sound | Look | Chunk | null {
  const type = typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;
  if (type === 'sound') return content as Sound;
  if (type === 'chunk') return { ...(content as Chunk), samples: floats(buffers[0]) };
  if (type === 'look') return { ...(content as Look), bounds: floats(buffers[0]), levels: bytes(buffers[1]), colours: bytes(buffers[2]) };
  return null;
}
