// Colours of code in answers, line by line: Python and CUDA C++. A line costs the same however long the code is.

export type Kind = 'comment' | 'string' | 'number' | 'keyword' | 'name' | 'directive';
export type Piece = readonly [text: string, kind: Kind | null];

interface Language {
  readonly token: RegExp;
  readonly keywords: ReadonlySet<string>;
  /** Names that the language gives. */
  readonly names: ReadonlySet<string>;
  /** What begins something that goes on over lines, and what ends it. */
  readonly open: ReadonlyMap<string, { readonly end: string; readonly kind: Kind }>;
  readonly comment: string;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const PYTHON: Language = {
  token: /"""|'''|#.*|[rbfuRBFU]{0,2}"(?:\\.|[^"\\])*"?|[rbfuRBFU]{0,2}'(?:\\.|[^'\\])*'?|@[\w.]+|\b\d[\w.]*|[A-Za-z_]\w*/g,
  keywords: words('and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False'),
  names: words('print range len int float str list dict set tuple bool sum min max abs enumerate zip map filter sorted isinstance super self'),
  open: new Map([
    ['"""', { end: '"""', kind: 'string' }],
    ["'''", { end: "'''", kind: 'string' }],
  ]),
  comment: '#',
};
const CPP: Language = {
  token: /\/\*|\/\/.*|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])'?|^\s*#\s*\w+|\b\d(?:['\w.]|[eEpP][+-])*|[A-Za-z_]\w*/g,
  keywords: words(
    'alignas alignof auto bool break case char class const constexpr continue decltype default delete do double else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator private protected public register return short signed sizeof static static_assert struct switch template this throw true try typedef typename union unsigned using virtual void volatile while half size_t int32_t uint32_t int64_t uint64_t __global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __launch_bounds__ __forceinline__ __noinline__',
  ),
  names: words(
    'threadIdx blockIdx blockDim gridDim warpSize dim3 float2 float3 float4 int2 int3 int4 uint2 uint4 half2 __half __half2 __nv_bfloat16 __syncthreads __syncwarp __shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync __ballot_sync __any_sync __all_sync __ldg atomicAdd atomicMax atomicMin atomicCAS atomicExch printf sqrtf expf logf fmaf fmaxf fminf min max',
  ),
  open: new Map([['/*', { end: '*/', kind: 'comment' }]]),
  comment: '//',
};
const LANGUAGES: Readonly<Record<string, Language>> = { python: PYTHON, py: PYTHON, python3: PYTHON, cuda: CPP, cu: CPP, cpp: CPP, 'c++': CPP, c: CPP, cc: CPP, h: CPP };
const MAX_LINE = 2000;

/** Cuts the lines of one block of code into pieces; it remembers what a line leaves open. */
export class Colours {
  private readonly language: Language | undefined;
  private open: { readonly end: string; readonly kind: Kind } | null = null;

  constructor(language: string) {
    this.language = Object.hasOwn(LANGUAGES, language.toLowerCase()) ? LANGUAGES[language.toLowerCase()] : undefined;
  }

  line(text: string): Piece[] {
    const { language } = this;
    if (!language || text.length > MAX_LINE) return text === '' ? [] : [[text, null]];
    const pieces: Piece[] = [];
    let at = 0;
    const add = (to: number, kind: Kind | null): void => {
      if (to > at) pieces.push([text.slice(at, to), kind]);
      at = Math.max(at, to);
    };
    const goOn = (from: number): boolean => {
      const { open } = this;
      if (!open) return false;
      const end = text.indexOf(open.end, from);
      if (end >= 0) this.open = null;
      add(end < 0 ? text.length : end + open.end.length, open.kind);
      return true;
    };
    goOn(0);
    while (at < text.length) {
      language.token.lastIndex = at;
      const match = language.token.exec(text);
      if (!match) break;
      add(match.index, null);
      const token = match[0];
      this.open = language.open.get(token) ?? null;
      if (!goOn(match.index + token.length)) add(match.index + token.length, kindOf(token, language));
    }
    add(text.length, null);
    return pieces;
  }
}

function kindOf(token: string, { keywords, names, comment }: Language): Kind | null {
  if (token.startsWith(comment)) return 'comment';
  if (/["']/.test(token)) return 'string';
  if (/^\s*[#@]/.test(token)) return 'directive';
  if (/^\d/.test(token)) return 'number';
  return keywords.has(token) ? 'keyword' : names.has(token) ? 'name' : null;
}
