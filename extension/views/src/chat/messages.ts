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
  /** Why, as a sentence; '' where it ended by itself. */
  readonly ended: string;
  readonly error: string;
  readonly figures: Figures | null;
}

/** What is done until the first token, and what is to be known of the answer; '' for nothing. */
export interface Stage {
  readonly number: number;
  readonly stage: string;
  readonly note: string;
}

/** null: the model's own. */
export interface Settings {
  readonly max_new_tokens: number | null;
  readonly temperature: number | null;
  readonly top_p: number | null;
}

export type MessageRow =
  | { readonly role: 'user'; readonly number: number; readonly places: readonly number[]; readonly text: string }
  | ({ readonly role: 'assistant'; readonly number: number; readonly places: readonly number[]; readonly rows: readonly TokenRow[] } & Stage & End);

export interface State {
  readonly type: 'state';
  readonly model: string;
  readonly system: string;
  readonly busy: boolean;
  readonly settings: Settings;
  readonly messages: readonly MessageRow[];
  /** The conversations by name, and the place of this one among them. */
  readonly chats: readonly string[];
  readonly chat: number;
}

export type FromKernel =
  | State
  | ({ readonly type: 'stage' } & Stage)
  | { readonly type: 'tokens'; readonly number: number; readonly at: number; readonly rows: readonly TokenRow[]; readonly figures: Figures | null }
  | ({ readonly type: 'ended' } & End)
  | { readonly type: 'refused'; readonly text: string; readonly question: string };

export type ToKernel =
  | { readonly type: 'view' | 'stop' | 'new' }
  | { readonly type: 'ask' | 'system'; readonly text: string }
  | { readonly type: 'edit'; readonly number: number; readonly text: string }
  | { readonly type: 'again' | 'choose' | 'delete' | 'go'; readonly number: number }
  | { readonly type: 'settings'; readonly settings: Settings };

const TYPES = ['state', 'stage', 'tokens', 'ended', 'refused'];

/** A message of our own kernel, or null where it is something else. */
export function read(content: unknown): FromKernel | null {
  const type = typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;
  return TYPES.includes(type as string) ? (content as FromKernel) : null;
}
