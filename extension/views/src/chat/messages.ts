// What the kernel sends to a chat, read from untyped messages.

/** Place in the answer, text, thinking, logarithm of the probability, probable tokens with theirs. */
export type TokenRow = readonly [number, string, string, number | null, readonly (readonly [string, number])[]];

export interface Figures {
  readonly rate: number | null;
  readonly first: number | null;
  readonly tokens: number;
  readonly used: number;
  readonly context: number;
  readonly bytes: number;
}

/** What is known of an answer's end: reason is null while it comes. */
export interface End {
  readonly number: number;
  readonly reason: string | null;
  readonly error: string;
  readonly figures: Figures | null;
}

export type MessageRow =
  | { readonly role: 'user'; readonly number: number; readonly places: readonly number[]; readonly text: string }
  | ({ readonly role: 'assistant'; readonly number: number; readonly places: readonly number[]; readonly rows: readonly TokenRow[] } & End);

export type FromKernel =
  | { readonly type: 'state'; readonly model: string; readonly system: string; readonly busy: boolean; readonly messages: readonly MessageRow[] }
  | { readonly type: 'tokens'; readonly number: number; readonly at: number; readonly rows: readonly TokenRow[]; readonly figures: Figures | null }
  | ({ readonly type: 'ended' } & End)
  | { readonly type: 'refused'; readonly text: string };

export type ToKernel =
  | { readonly type: 'view' | 'stop' | 'clear' }
  | { readonly type: 'ask' | 'system'; readonly text: string }
  | { readonly type: 'edit'; readonly number: number; readonly text: string }
  | { readonly type: 'again' | 'choose'; readonly number: number };

const TYPES = ['state', 'tokens', 'ended', 'refused'];

/** A message of our own kernel, or null where it is something else. */
export function read(content: unknown): FromKernel | null {
  const type = typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;
  return TYPES.includes(type as string) ? (content as FromKernel) : null;
}
