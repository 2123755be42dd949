// CUDA C++ below a `%%cuda` line, token by token: a stream parser for CodeMirror, with indentation by brackets.

import type { StreamParser, StringStream } from '@codemirror/language';
import { CONTROL, QUALIFIERS, TYPES, WORDS } from './words.js';

interface Bracket {
  readonly close: string;
  /** Columns: of the line that opened it, and of what stands inside. */
  readonly outer: number;
  readonly inner: number;
}

export interface CudaState {
  /** Where the magic is: not yet seen, on this line, or above (or there is none). */
  magic: 'before' | 'here' | 'above';
  comment: boolean;
  include: boolean;
  brackets: readonly Bracket[];
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
const NUMBER = /^(?:0[xX][\da-fA-F']+|0[bB][01']+|(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfFzZ]*/;
const WORD_START = /[A-Za-z_]/;
const NUMBER_START = /[.\d]/;
const STRING_PREFIX = /[uUL]/;
const STRING = /^(?:u8|u|U|L)?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)/;

export const cudaParser: StreamParser<CudaState> = {
  name: 'cuda',
  startState: () => ({ magic: 'before', comment: false, include: false, brackets: [] }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    if (stream.sol()) beginLine(stream, state);
    if (stream.eatSpace()) return null;
    if (state.magic === 'here') return magicToken(stream);
    if (state.comment) return commentToken(stream, state);
    return codeToken(stream, state);
  },
  indent(state, textAfter, context) {
    if (/^\s*#/.test(textAfter) || state.comment) return state.comment ? null : 0;
    const innermost = state.brackets.at(-1);
    if (!innermost) return 0;
    if (textAfter.trimStart().startsWith(innermost.close)) return innermost.outer;
    if (/^\s*(?:case\b.*|default\s*|public|private|protected)\s*:/.test(textAfter)) return innermost.outer;
    return innermost.inner < 0 ? innermost.outer + context.unit : innermost.inner;
  },
  languageData: {
    commentTokens: { line: '//', block: { open: '/*', close: '*/' } },
    closeBrackets: { brackets: ['(', '[', '{', '"', "'"] },
    indentOnInput: /^\s*(?:\}|\)|#|case\b.*:|default\s*:)$/,
    wordChars: '_',
  },
};

function beginLine(stream: StringStream, state: CudaState): void {
  state.include = false;
  if (state.magic === 'here') state.magic = 'above';
  if (state.magic === 'before' && /\S/.test(stream.string)) {
    state.magic = /^\s*%%cuda(?![\w.])/.test(stream.string) ? 'here' : 'above';
  }
}

/** The magic's name, its options and their values. */
function magicToken(stream: StringStream): string | null {
  if (stream.match(/^%%\w+/)) return 'meta';
  if (stream.match(/^--?[A-Za-z][\w-]*/)) return 'attributeName';
  if (stream.match(STRING)) return 'string';
  if (stream.match(NUMBER)) return 'number';
  if (!stream.match(/^[^\s"'\-\d]+/)) stream.next();
  return null;
}

function commentToken(stream: StringStream, state: CudaState): string {
  if (stream.skipTo('*/')) {
    stream.match('*/');
    state.comment = false;
  } else {
    stream.skipToEnd();
  }
  return 'blockComment';
}

/** What a token is, its first character tells: no pattern is tried that cannot match, since a long notebook has many tokens. */
function codeToken(stream: StringStream, state: CudaState): string | null {
  const first = stream.peek() ?? '';
  if (WORD_START.test(first)) {
    if (STRING_PREFIX.test(first) && stream.match(STRING)) return 'string';
    return wordToken((stream.match(/^\w+/) as RegExpMatchArray)[0]);
  }
  if (first === '"' || first === "'") {
    stream.match(STRING);
    return 'string';
  }
  if (NUMBER_START.test(first) && stream.match(NUMBER)) return 'number';
  if (first === '/') {
    if (stream.match('//')) {
      stream.skipToEnd();
      return 'lineComment';
    }
    if (stream.match('/*')) {
      state.comment = true;
      return commentToken(stream, state);
    }
  }
  if (first === '#' && stream.column() === stream.indentation()) {
    state.include = (stream.match(/^#\s*(\w*)/) as RegExpMatchArray)[1] === 'include';
    return 'meta';
  }
  if (state.include && first === '<' && stream.match(/^<[^>\n]*>?/)) return 'string';
  if (stream.match('<<<') || stream.match('>>>')) return 'keyword';
  return symbolToken(stream, state);
}

function wordToken(word: string): string {
  if (CONTROL.has(word) || QUALIFIERS.has(word)) return 'keyword';
  if (word === 'true' || word === 'false' || word === 'nullptr') return 'atom';
  if (TYPES.has(word)) return 'typeName';
  return WORDS.has(word) ? 'variableName.standard' : 'variableName';
}

/**
 * Braces stay plain: CodeMirror measures the characters of an editor in a short line without elements of its own, as a lone
 * brace is, and where it has none it adds one and takes it away, which lays out the page twice for each editor in sight.
 */
function symbolToken(stream: StringStream, state: CudaState): string | null {
  const column = stream.column();
  const symbol = stream.next() ?? '';
  const close = CLOSING[symbol];
  const kind = symbol === '{' || symbol === '}' ? null : 'bracket';
  if (close) {
    const ends = /^\s*(?:\/\/.*)?$/.test(stream.string.slice(stream.pos));
    const inner = symbol === '{' || ends ? -1 : column + 1;
    state.brackets = [...state.brackets, { close, outer: stream.indentation(), inner }];
    return kind;
  }
  if (symbol === ')' || symbol === ']' || symbol === '}') {
    const at = state.brackets.findLastIndex((one) => one.close === symbol);
    if (at >= 0) state.brackets = state.brackets.slice(0, at);
    return kind;
  }
  return /[-+*/%=<>!&|^~?:]/.test(symbol) ? 'operator' : null;
}
