// scan.cu: inclusive prefix sums and products along one axis; every association of operands is fixed by the shape.
#include "lookback.cuh"
#include "overlap.cuh"
#include "rows.cuh"

namespace pk {

// ---- operations: apply(earlier, later), and the identity that changes no bit of the other operand ----

template <class A>
struct Identity {
  static __device__ __forceinline__ A zero() { return A(-0.0); }  // -0.0 + x is x, also for x = -0.0
  static __device__ __forceinline__ A one() { return A(1); }
};
template <class R>
struct Identity<complex_t<R>> {
  static __device__ __forceinline__ complex_t<R> zero() { return {R(-0.0), R(-0.0)}; }
  static __device__ __forceinline__ complex_t<R> one() { return {R(1), R(0)}; }
};

struct Sum {
  template <class A>
  static __device__ __forceinline__ A identity() {
    return Identity<A>::zero();
  }
  template <class A>
  static __device__ __forceinline__ A apply(A a, A b) {
    return add(a, b);
  }
};

struct Product {
  template <class A>
  static __device__ __forceinline__ A identity() {
    return Identity<A>::one();
  }
  template <class A>
  static __device__ __forceinline__ A apply(A a, A b) {
    return multiply(a, b);
  }
  // 1 times an infinite complex number would have NaN parts.
  template <class R>
  static __device__ __forceinline__ complex_t<R> apply(complex_t<R> a, complex_t<R> b) {
    if (a.re == 1 && a.im == 0) return b;
    if (b.re == 1 && b.im == 0) return a;
    return multiply(a, b);
  }
};

struct ScanLayout {
  Layout<2> lines;    // all axes but the scanned one, of input and output
  long long length;   // of the scanned axis
  long long step[2];  // elements from one to the next along it
  long long pieces;   // a line is cut into: tiles of scan_rows, chunks of scan_lines
  long long per_piece;
};

// ---- shuffles of every accumulator ----

template <class A>
__device__ __forceinline__ A from_lane(A value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <class R>
__device__ __forceinline__ complex_t<R> from_lane(complex_t<R> value, int lane) {
  return {__shfl_sync(kAllLanes, value.re, lane), __shfl_sync(kAllLanes, value.im, lane)};
}

// Inclusive scan over the lanes of a warp.
template <class Op, class A>
__device__ __forceinline__ A scan_warp(A value, int lane) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const A other = from_lane(value, lane < distance ? lane : lane - distance);
    if (lane >= distance) value = Op::apply(other, value);
  }
  return value;
}

// ---- long rows: one tile a block ----
// What precedes a tile is the sum of up to 31 tiles before it in its group of 32, of up to 31 groups before that one in
// its group of groups, and so on. Only totals are passed on, never prefixes, so that the order of additions is a tree
// given by the tile's position, whatever the timing. The first warp calls; all lanes get the result.
constexpr int kAsked = 3;  // levels whose slots are asked for at once: a question takes as long as several

template <class Op, class A>
__device__ __forceinline__ A preceding(unsigned long long *slots, long long tiles, long long tile, A total, int lane) {
  using Mine = Slots<A>;
  typename Mine::Answer early[kAsked];
  unsigned long long *level = slots;
  for (long long k = 0, left = tile, count = tiles; k < kAsked && count > 0; ++k) {
    const int place = static_cast<int>(left & 31);
    if (lane < place) early[k] = Mine::ask(level + (left - place + lane) * Mine::kCount);
    level += count * Mine::kCount;
    left >>= 5;
    count >>= 5;
  }
  A prefix = Op::template identity<A>();
  bool last = true;  // of its group, on every level so far
  for (int k = 0;; ++k) {
    if (last && lane == 0) Mine::publish(slots + tile * Mine::kCount, total);
    const int place = static_cast<int>(tile & 31);
    A value = Op::template identity<A>();
    if (lane < place) {
      const unsigned long long *slot = slots + (tile - place + lane) * Mine::kCount;
      bool there = false;
#pragma unroll
      for (int q = 0; q < kAsked; ++q) {
        if (q == k) there = Mine::read(early[q], value);
      }
      if (!there) value = Mine::wait(slot);
    }
    const A before = from_lane(scan_warp<Op>(value, lane), 31);
    prefix = Op::apply(before, prefix);
    total = Op::apply(before, total);
    last = last && place == 31;
    slots += tiles * Mine::kCount;
    tiles >>= 5;
    tile >>= 5;
    if (tile == 0 && !last) return prefix;
    if (tiles == 0) return prefix;
  }
}

// Before scan_rows, which begins at the same time and waits for the slots when it needs them.
__global__ void __launch_bounds__(256) clear_slots(unsigned long long *slots, long long count) {
  let_next_begin();
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) slots[i] = 0;
}

// Of 16 bytes, each thread: as many as registers allow, but few where a warp makes a short row.
template <class O, int Warps>
__device__ constexpr int vectors() {
  return Warps == 1 || sizeof(O) > 8 ? 4 : sizeof(O) == 8 ? 8 : sizeof(O) == 4 ? 16 : 10;
}

template <class S, class O>
__device__ constexpr int vector_size() {
  return 16 / (sizeof(S) > sizeof(O) ? sizeof(S) : sizeof(O));
}

// Elements of a vector as accumulators; those from `count` on, if any, change nothing.
template <class Op, class S, class A, int N>
__device__ __forceinline__ void take_vector(const Pack<S, N> &pack, long long count, bool whole, A (&x)[N]) {
  if constexpr (same_type<compute_t<S>, A>) {
    widen_pack(pack, x);
  } else {
    for (int j = 0; j < N; ++j) x[j] = convert<A>::from(pack.v[j]);
  }
  for (int j = 0; j < N; ++j) {
    if (!whole && j >= count) x[j] = Op::template identity<A>();
  }
  for (int j = 1; j < N; ++j) x[j] = Op::apply(x[j - 1], x[j]);
}

// Warps = 8: a block, of up to 8 warps, makes one tile of a row. Warps = 1: each of its 8 warps makes one short row.
template <class S, class O, class Op, int Warps>
__global__ void __launch_bounds__(256, sizeof(O) < 4 ? 3 : 2)
    scan_rows(const S *in, O *out, unsigned long long *state, const __grid_constant__ ScanLayout p) {
  using A = compute_t<O>;
  constexpr int N = vector_size<S, O>();
  constexpr int kVectors = vectors<O, Warps>();
  constexpr int kPerWarp = kVectors * 32 * N;
  __shared__ A warp_totals[8];
  __shared__ A tile_prefix;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  long long row, tile = 0;
  if constexpr (Warps == 1) {
    row = static_cast<long long>(blockIdx.x) * 8 + warp;
    if (row >= p.lines.size) return;
  } else {
    const unsigned pieces = static_cast<unsigned>(p.pieces);  // there are as many blocks, so 32 bits do
    row = blockIdx.x / pieces;
    tile = blockIdx.x % pieces;
  }
  long long at[2];
  place(p.lines, row, at);
  const long long first = tile * p.per_piece + (Warps == 1 ? 0 : warp * kPerWarp);
  at[0] += first * p.step[0];
  at[1] += first * p.step[1];
  const long long count = p.length - first;  // in this warp's piece and after it; may be negative

  // A short row has no element of its warp's last vectors, which would be scanned for nothing.
  const auto empty = [&](int k) { return Warps == 1 && k * 32 * N >= count; };

  // Kept as they are and added up twice: in this form they take the fewest registers.
  Held<S, N> raw[kVectors];
  const bool whole = count >= kPerWarp;
  if (whole && p.step[0] == 1 && reinterpret_cast<unsigned long long>(in + at[0]) % (sizeof(S) * N) == 0) {
    for (int k = 0; k < kVectors; ++k) raw[k].load(in + at[0] + (k * 32 + lane) * N);
  } else {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      Pack<S, N> pack{};
      if (empty(k)) continue;
      for (int j = 0; j < N; ++j) {
        const int i = (k * 32 + lane) * N + j;
        if (i < count) pack.v[j] = in[at[0] + i * p.step[0]];
      }
      raw[k].keep(pack);
    }
  }

  // What comes before this thread's elements in the warp's piece: in registers it would cost a block on the SM.
  __shared__ A parked[kVectors][256];
  A *const before = &parked[0][threadIdx.x];
  A total = Op::template identity<A>();
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    if (empty(k)) continue;
    A x[N];
    take_vector<Op>(raw[k].pack(), count - (k * 32 + lane) * N, whole, x);
    const A inclusive = scan_warp<Op>(x[N - 1], lane);
    const A exclusive = from_lane(inclusive, lane == 0 ? 0 : lane - 1);
    before[k * 256] = lane == 0 ? total : Op::apply(total, exclusive);
    total = Op::apply(total, from_lane(inclusive, 31));
  }

  A prefix = Op::template identity<A>();
  if constexpr (Warps > 1) {
    if (lane == 0) warp_totals[warp] = total;
    __syncthreads();
    for (int w = 0; w < warp; ++w) prefix = Op::apply(prefix, warp_totals[w]);
    if (p.pieces > 1) {
      if (warp == 0) {
        A whole_tile = warp_totals[0];
        for (int w = 1; w < blockDim.x / 32; ++w) whole_tile = Op::apply(whole_tile, warp_totals[w]);
        long long slots = 0;
        for (long long level = p.pieces; level > 0; level >>= 5) slots += level;
        unsigned long long *const own = state + row * slots * Slots<A>::kCount;
        await_previous();  // it clears the slots
        const A earlier = preceding<Op>(own, p.pieces, tile, whole_tile, lane);
        if (lane == 0) tile_prefix = earlier;
      }
      __syncthreads();
      prefix = Op::apply(tile_prefix, prefix);
    }
  }

  const bool dense = p.step[1] == 1 && reinterpret_cast<unsigned long long>(out + at[1]) % (sizeof(O) * N) == 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    if (empty(k)) continue;
    A x[N];
    raw[k].again();
    take_vector<Op>(raw[k].pack(), count - (k * 32 + lane) * N, whole, x);
    const A offset = Op::apply(prefix, before[k * 256]);
    for (int j = 0; j < N; ++j) x[j] = Op::apply(offset, x[j]);
    Pack<O, N> pack;
    if constexpr (same_type<compute_t<O>, A>) {
      pack = narrow_pack<O, N>(x);
    } else {
      for (int j = 0; j < N; ++j) pack.v[j] = convert<O>::from(x[j]);
    }
    if (whole && dense) {
      store_pack<N>(out + at[1] + (k * 32 + lane) * N, pack);
    } else {
      for (int j = 0; j < N; ++j) {
        const int i = (k * 32 + lane) * N + j;
        if (i < count) out[at[1] + i * p.step[1]] = pack.v[j];
      }
    }
  }
}

// ---- across rows, and very short rows: one thread walks a chunk of a line; neighbours walk neighbouring lines ----

constexpr int kAhead = 8;  // loads in flight, each thread

struct Chunk {
  long long line, index, begin, end;
};

__device__ __forceinline__ bool find_chunk(const ScanLayout &p, Chunk &chunk) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.lines.size * p.pieces) return false;
  chunk.line = i % p.lines.size;
  chunk.index = i / p.lines.size;
  chunk.begin = chunk.index * p.per_piece;
  chunk.end = chunk.begin + p.per_piece < p.length ? chunk.begin + p.per_piece : p.length;
  return true;
}

template <class S, class A>
__device__ __forceinline__ void load_ahead(const S *in, long long step, long long i, long long end, A (&x)[kAhead]) {
  for (int k = 0; k < kAhead; ++k) {
    if (i + k < end) x[k] = convert<A>::from(in[(i + k) * step]);
  }
}

// totals[chunk][line] of every chunk, for scan_lines over them.
template <class S, class O, class Op>
__global__ void __launch_bounds__(256)
    total_lines(const S *in, compute_t<O> *totals, const __grid_constant__ ScanLayout p) {
  using A = compute_t<O>;
  Chunk chunk;
  if (!find_chunk(p, chunk)) return;
  long long at[2];
  locate(p.lines, chunk.line, at);
  A total = Op::template identity<A>();
  for (long long i = chunk.begin; i < chunk.end; i += kAhead) {
    A x[kAhead];
    load_ahead(in + at[0], p.step[0], i, chunk.end, x);
    for (int k = 0; k < kAhead; ++k) {
      if (i + k < chunk.end) total = Op::apply(total, x[k]);
    }
  }
  totals[chunk.index * p.lines.size + chunk.line] = total;
}

// prefixes[chunk][line]: the scanned totals; not read when a line is one chunk.
template <class S, class O, class Op>
__global__ void __launch_bounds__(256)
    scan_lines(const S *in, O *out, const compute_t<O> *prefixes, const __grid_constant__ ScanLayout p) {
  using A = compute_t<O>;
  Chunk chunk;
  if (!find_chunk(p, chunk)) return;
  long long at[2];
  locate(p.lines, chunk.line, at);
  A prefix = Op::template identity<A>();
  if (chunk.index > 0) prefix = prefixes[(chunk.index - 1) * p.lines.size + chunk.line];
  A sum = Op::template identity<A>();
  for (long long i = chunk.begin; i < chunk.end; i += kAhead) {
    A x[kAhead];
    load_ahead(in + at[0], p.step[0], i, chunk.end, x);
    for (int k = 0; k < kAhead; ++k) {
      if (i + k >= chunk.end) break;
      sum = Op::apply(sum, x[k]);
      out[at[1] + (i + k) * p.step[1]] = convert<O>::from(Op::apply(prefix, sum));
    }
  }
}

}  // namespace pk
