// sort.cu: stable radix sort of rows, 8 bits a pass, lowest first. Short rows in one block, long ones in one launch a
// pass. Elements keep their bits; counting is in integers, so no result depends on the order of blocks.
#include "lookback.cuh"
#include "order.cuh"

namespace pk {

constexpr int kDigits = 256;
constexpr int kMaxWarps = 16;
constexpr int kMaxThreads = 32 * kMaxWarps;

struct SortLayout {
  long long rows;
  long long length;  // of a row
  long long pieces;  // a row is cut into: tiles of sort_pass, spans of count_digits; or rows a block of sort_rows
  long long number;  // of the pass
  long long flip;  // 255: descending
};

// Elements a thread holds, so that a tile's keys, and its indices after them, fit 32 KB of shared memory.
template <class T, bool Indexed>
__device__ constexpr int items() {
  constexpr int widest = Indexed && sizeof(T) < 8 ? 8 : sizeof(T);
  return widest <= 4 ? 16 : 64 / (widest < 8 ? 8 : widest);
}

// Exclusive prefix sums of kDigits values, by one warp.
template <class V>
__device__ __forceinline__ void scan_digits(const V *values, V *starts, int lane) {
  constexpr int kEach = kDigits / 32;
  V own[kEach];
  V sum = 0;
  for (int k = 0; k < kEach; ++k) {
    own[k] = sum;
    sum += values[lane * kEach + k];
  }
  V inclusive = sum;
  for (int distance = 1; distance < 32; distance *= 2) {
    const V other = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane >= distance) inclusive += other;
  }
  for (int k = 0; k < kEach; ++k) starts[lane * kEach + k] = inclusive - sum + own[k];
}

struct Tile {
  unsigned totals[kDigits];  // elements with each digit
  unsigned starts[kDigits];  // and with a lower one
};

// Position in a block's tile of its k-th element of this thread: every warp has neighbouring elements.
__device__ __forceinline__ int place(int k, int held) {
  return (static_cast<int>(threadIdx.x / 32) * held + k) * 32 + static_cast<int>(threadIdx.x % 32);
}

// Turns ranks[k], the digit of this thread's k-th element, into where that element goes when the tile is sorted by
// digit, stably. held: elements each thread has, at most Items. counts: for each warp its counters, then for each warp
// the lanes that have a digit. counted(d, total) is called once for every digit. All threads call.
template <int Items, class Counted>
__device__ __forceinline__ void rank_digits(unsigned (&ranks)[Items], int held, unsigned (*counts)[kDigits], Tile &tile,
                                            Counted counted) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  unsigned *const own = counts[warp], *const match = counts[kMaxWarps + warp];
  for (int d = lane; d < kDigits; d += 32) own[d] = match[d] = 0;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < Items; ++k) {
    if (k >= held) break;
    const unsigned digit = ranks[k];
    atomicOr(&match[digit], 1u << lane);
    __syncwarp();
    const unsigned peers = match[digit];  // lanes with the same digit
    const unsigned before = own[digit];
    const unsigned ahead = __popc(peers & ((1u << lane) - 1u));
    __syncwarp();
    if (ahead == 0) {
      own[digit] = before + __popc(peers);
      match[digit] = 0;
    }
    __syncwarp();
    ranks[k] = digit << 16 | (before + ahead);  // both in one register: the tile is smaller than 2^16
  }
  __syncthreads();
  for (int d = threadIdx.x; d < kDigits; d += blockDim.x) {
    unsigned sum = 0;
    for (int w = 0; w < warps; ++w) {
      const unsigned count = counts[w][d];
      counts[w][d] = sum;
      sum += count;
    }
    tile.totals[d] = sum;
    counted(d, sum);
  }
  __syncthreads();
  if (warp == 0) scan_digits(tile.totals, tile.starts, lane);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Items; ++k) {
    const unsigned digit = ranks[k] >> 16;
    if (k < held) ranks[k] = (ranks[k] & 0xffffu) + tile.starts[digit] + own[digit];
  }
  __syncthreads();
}

// ---- rows that fit a block: all passes in shared memory; several rows are kept apart by a last pass over the row ----

template <class T>
__global__ void __launch_bounds__(kMaxThreads, 2)
    sort_rows(const T *in, T *out, long long *out_index, const __grid_constant__ SortLayout p) {
  constexpr int kItems = items<T, false>();
  __shared__ union {
    unsigned counts[2 * kMaxWarps][kDigits];
    alignas(T) unsigned char keys[kMaxThreads * kItems * sizeof(T)];
    unsigned short places[kMaxThreads * kItems];
  } shared;
  __shared__ Tile tile;
  T *const keys = reinterpret_cast<T *>(shared.keys);
  const long long row = static_cast<long long>(blockIdx.x) * p.pieces;
  const int rows = static_cast<int>(p.rows - row < p.pieces ? p.rows - row : p.pieces);
  const int length = static_cast<int>(p.length);
  const int count = rows * length;
  const int held = (count + blockDim.x - 1) / blockDim.x;
  const long long base = row * p.length;

  T x[kItems];
  unsigned from[kItems];  // place in the block's input; count and more: none
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k >= held) break;
    from[k] = place(k, held);
    x[k] = from[k] < count ? in[base + from[k]] : T{};
  }
  const int passes = Digits<T>::kPasses + (rows > 1);
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    unsigned rank[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= held) break;
      if (pass == Digits<T>::kPasses) {
        rank[k] = from[k] / length;
      } else {
        rank[k] = Digits<T>::of(x[k], pass) ^ static_cast<unsigned>(p.flip);
      }
      if (from[k] >= count) rank[k] = kDigits - 1;  // behind all others, as at the start
    }
    rank_digits(rank, held, shared.counts, tile, [](int, unsigned) {});
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < held) keys[rank[k]] = x[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < held) x[k] = keys[place(k, held)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < held) shared.places[rank[k]] = static_cast<unsigned short>(from[k]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < held) from[k] = shared.places[place(k, held)];
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = place(k, held);
    if (k >= held || i >= count) break;
    out[base + i] = x[k];
    out_index[base + i] = from[k] - i / length * length;
  }
}

// ---- long rows ----

// Copies of each counter, so that lanes with the same digit do not all wait for one.
template <class T>
__device__ constexpr int copies() {
  return Digits<T>::kPasses >= 16 ? 1 : 16 / Digits<T>::kPasses;
}

// bins[row][pass][digit] += elements of the row that have this digit. bins start as 0.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    count_digits(const T *in, unsigned long long *bins, const __grid_constant__ SortLayout p) {
  constexpr int kPasses = Digits<T>::kPasses;
  constexpr int kCopies = copies<T>();
  constexpr int kAhead = 8;
  __shared__ unsigned counts[kPasses * kDigits * kCopies];
  for (int i = threadIdx.x; i < kPasses * kDigits * kCopies; i += kMaxThreads) counts[i] = 0;
  __syncthreads();
  const unsigned pieces = static_cast<unsigned>(p.pieces);
  const long long row = blockIdx.x / pieces;
  const long long span = (p.length + p.pieces - 1) / p.pieces;
  const long long begin = blockIdx.x % pieces * span;
  const long long end = begin + span < p.length ? begin + span : p.length;
  const T *const own = in + row * p.length;
  const int copy = threadIdx.x % kCopies;
  for (long long i = begin + threadIdx.x; i < end; i += kMaxThreads * kAhead) {
    T x[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k * kMaxThreads < end) x[k] = own[i + k * kMaxThreads];
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k * kMaxThreads >= end) break;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const unsigned digit = Digits<T>::of(x[k], pass) ^ static_cast<unsigned>(p.flip);
        atomicAdd(&counts[(pass * kDigits + digit) * kCopies + copy], 1u);
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kPasses * kDigits; i += kMaxThreads) {
    unsigned long long sum = 0;
    for (int c = 0; c < kCopies; ++c) sum += counts[i * kCopies + c];
    if (sum != 0) atomicAdd(&bins[row * kPasses * kDigits + i], sum);
  }
}

// What a tile has published of one digit: a count in the low 48 bits, above it which pass it is of and whether it is
// of the tile alone or of all tiles up to it. Integers: whichever a later tile finds first, the sum is the same.
__device__ __forceinline__ void publish_count(unsigned long long *word, long long pass, bool all, long long count) {
  const unsigned long long mark = 2 * pass + (all ? 2 : 1);
  *reinterpret_cast<volatile unsigned long long *>(word) = (mark << 48) | static_cast<unsigned long long>(count);
}

// Elements with this digit in the tiles before the one whose word this is.
__device__ __forceinline__ long long count_before(const unsigned long long *word, long long tile, long long pass) {
  long long count = 0;
  while (tile > 0) {
    word -= kDigits;
    --tile;
    unsigned long long marked, mark;
    do {
      marked = *reinterpret_cast<const volatile unsigned long long *>(word);
      mark = marked >> 48;
    } while (mark <= static_cast<unsigned long long>(2 * pass));  // nothing yet, or of an earlier pass
    count += static_cast<long long>(marked & 0xffffffffffffull);
    if (mark == static_cast<unsigned long long>(2 * pass + 2)) break;
  }
  return count;
}

// One pass over rows of `pieces` tiles. state: the bins, then the tiles' words, all once 0.
// Indices start as positions in the row.
template <class T, bool Indexed>
__global__ void __launch_bounds__(kMaxThreads, 2)
    sort_pass(const T *in, const long long *in_index, T *out, long long *out_index, unsigned long long *state,
              const __grid_constant__ SortLayout p) {
  constexpr int kItems = items<T, Indexed>();
  constexpr int kPasses = Digits<T>::kPasses;
  constexpr int kTile = kMaxThreads * kItems;
  __shared__ union {
    unsigned counts[2 * kMaxWarps][kDigits];
    alignas(T) unsigned char keys[kTile * sizeof(T)];
    long long indices[Indexed ? kTile : 1];
  } shared;
  __shared__ Tile tile;
  __shared__ unsigned long long bin_starts[kDigits];
  __shared__ long long targets[kDigits];  // where the tile's elements with a digit go, less their start in the tile
  T *const keys = reinterpret_cast<T *>(shared.keys);

  const long long number = blockIdx.x;
  const unsigned pieces = static_cast<unsigned>(p.pieces);  // there are as many blocks, so 32 bits do
  const long long row = blockIdx.x / pieces;
  const long long part = blockIdx.x % pieces;
  const unsigned long long *const bins = state + (row * kPasses + p.number) * kDigits;
  unsigned long long *const words = state + p.rows * kPasses * kDigits + number * kDigits;
  const long long base = row * p.length;
  const long long first = part * kTile;
  const int count = static_cast<int>(p.length - first < kTile ? p.length - first : kTile);
  const int held = (count + kMaxThreads - 1) / kMaxThreads;

  T x[kItems];
  unsigned rank[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k < held && place(k, held) < count) x[k] = in[base + first + place(k, held)];
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k >= held) break;
    rank[k] = kDigits - 1;  // behind all others
    if (place(k, held) < count) rank[k] = Digits<T>::of(x[k], p.number) ^ static_cast<unsigned>(p.flip);
  }
  if (threadIdx.x / 32 == kMaxWarps - 1) scan_digits(bins, bin_starts, threadIdx.x % 32);
  const unsigned absent = held * kMaxThreads - count;
  rank_digits(rank, held, shared.counts, tile, [&](int d, unsigned total) {
    if (d == kDigits - 1) total -= absent;
    publish_count(words + d, p.number, part == 0, total);
  });
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k < held && rank[k] < count) keys[rank[k]] = x[k];
  }
  if (threadIdx.x < kDigits) {
    const int d = threadIdx.x;
    const long long before = count_before(words + d, part, p.number);
    const long long total = tile.totals[d] - (d == kDigits - 1 ? absent : 0u);
    if (part > 0) publish_count(words + d, p.number, true, before + total);
    targets[d] = base + static_cast<long long>(bin_starts[d]) + before - tile.starts[d];
  }
  __syncthreads();

  long long at[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = k * kMaxThreads + static_cast<int>(threadIdx.x);
    if (i >= count) break;
    const T key = keys[i];
    at[k] = targets[Digits<T>::of(key, p.number) ^ static_cast<unsigned>(p.flip)] + i;
    out[at[k]] = key;
  }
  if constexpr (Indexed) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= held || rank[k] >= count) continue;
      const int i = place(k, held);
      shared.indices[rank[k]] = p.number == 0 ? first + i : in_index[base + first + i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int i = k * kMaxThreads + static_cast<int>(threadIdx.x);
      if (i < count) out_index[at[k]] = shared.indices[i];
    }
  }
}

}  // namespace pk
