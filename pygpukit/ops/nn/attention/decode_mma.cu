// decode_mma.cu: attention of a few queries on a long cache (decode.cuh) in 16 bits, on tensor cores. A warp takes
// kTile keys at a time. It reads keys and values in such an order that what a lane holds is an operand as it is (keys)
// or with its halves exchanged (values): the next are on their way while some are computed with, and nothing passes
// through shared memory but queries and the sums of the warps. A weight is two numbers of 16 bits, so that it keeps 16
// bits of its own.
#include "decode.cuh"
#include "mma.cuh"
#include "overlap.cuh"
#include "report.cuh"

namespace pk {

constexpr int kTile = 16, kWarps = 4, kThreads = 32 * kWarps, kRows = 8;
constexpr int kPack = 8;  // elements that a lane reads at once
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool kManyRegisters = true;  // NVRTC takes more of them for the same
#else
constexpr bool kManyRegisters = false;
#endif

// Two floats, rounded.
template <class T>
__device__ __forceinline__ Pair pair_of(float first, float second) {
  Pair pair;
  if constexpr (same_type<T, half_t>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// What rounding a float into a pair has left of it.
template <class T>
__device__ __forceinline__ float rest_of(float number, Pair pair, int which) {
  return number - widen(T{static_cast<unsigned short>(pair >> 16 * which)});
}

// Packs of a row, the first at `row`, the others kApart elements further each, as many as the row has elements left
// there; what is held stays otherwise. Whole: elements are neighbours, and packs whole.
template <bool Whole, int kApart, int kSpans, class T>
__device__ __forceinline__ void read_row(Held<T, kPack> (&held)[kSpans], const T *row, long long step, int left) {
  if constexpr (!Whole) asm volatile("" : "+l"(step));  // nothing made of it is kept across the loop over keys
  const long long to_next = (kApart - kPack) * step;
#pragma unroll
  for (int s = 0; s < kSpans; ++s) {
    if constexpr (Whole) {
      if (kApart * s < left) held[s].load(row + kApart * s);
    } else {
      Pack<T, kPack> pack = held[s].pack();
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (kApart * s + j < left) pack.v[j] = *row;
        row += step;
        // One place at a time: those of a whole row would not fit into registers.
        asm volatile("" : "+l"(row));
      }
      held[s].keep(pack);
      row += to_next;
    }
  }
}

// work: of every part its rows' totals, largest scores and sums. Blocks in x are a head of keys and some of its rows,
// in y parts, in z sequences: blocks that read the same keys are neighbours. Whole: rows are dense, of whole 16 bytes.
template <class T, int Dim, bool Whole>
__global__ void __launch_bounds__(kThreads, (Dim <= 128 ? 12 : 8) / kWarps)
    attend_rows(const T *q, const T *k, const T *v, const int *lengths, const int *table, float *work,
                long long *report, const __grid_constant__ DecodeAttention p) {
  static_assert(kWarps * kTile == kChunk<T>, "a warp takes a tile of each chunk");
  constexpr int kSpans = Dim / 32, kHalves = Dim / 64;
  alignas(16) __shared__ float totals[kWarps][kRows][Dim];
  __shared__ float warp_largest[kWarps][kRows], warp_sum[kWarps][kRows];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, eighth = lane / 4, four = lane % 4;
  const float minus_infinity = -__uint_as_float(0x7f800000u);
  let_next_begin();

  const unsigned tiles = static_cast<unsigned>(p.tiles), batch = blockIdx.z, part = blockIdx.y;
  const unsigned head = tiles == 1 ? blockIdx.x : blockIdx.x / tiles;
  const Parts parts = parts_of<T>(lengths, batch, p);
  const int dim = static_cast<int>(p.dim), begin = static_cast<int>(part) * parts.each;
  if (begin >= parts.chunks) return;
  const int chunks = parts.chunks - begin < parts.each ? parts.chunks - begin : parts.each;

  // Where the keys and values of a tile lie, a lane for each, and a bit for each that somebody sees.
  const int first_key = (parts.first + begin) * kChunk<T> + warp * kTile;
  const long long own_page = p.has_table ? 0 : batch;
  const long long k_head = p.k.start + own_page * p.k.step[0] + head * p.k.step[1];
  const long long v_head = p.v.start + own_page * p.v.step[0] + head * p.v.step[1];
  const long long k_chunk = kChunk<T> * p.k.step[2], v_chunk = kChunk<T> * p.v.step[2];
  int key = first_key + lane % kTile;
  long long k_place, v_place, k_next = k_head + key * p.k.step[2], v_next = v_head + key * p.v.step[2];
  unsigned seen;
  const auto find = [&](int chunk) {
    bool there = chunk < chunks && key >= parts.low && key < parts.length;
    if (p.has_table && there) {
      const unsigned size = static_cast<unsigned>(p.page), number = key / size, place = key - number * size;
      const long long page = table[batch * p.table_step + number];
      k_next = k_head + page * p.k.step[0] + place * p.k.step[2];
      v_next = v_head + page * p.v.step[0] + place * p.v.step[2];
      there = page >= 0 && page < p.pages;
      if (!there) report_index(report, page, 0, p.pages);
    }
    seen = __ballot_sync(0xffffffffu, there);
    k_place = k_next, v_place = v_next;
    k_next += k_chunk, v_next += v_chunk, key += kChunk<T>;
  };

  // Of a product's 16 elements along the head, a lane holds four that are neighbours: 2 four, 2 four + 1 and those 8
  // further stand for any that queries and keys agree on. Keys eighth and eighth + 8; what nobody sees stays as it was.
  // Keys and values of large heads do not fit into registers together where each element has its own place, or the
  // compiler takes more of them: then the values are read when the keys have been used, and the next keys after those.
  constexpr bool kTogether = kManyRegisters ? Dim <= 128 && Whole : Dim <= 128 || Whole;
  Held<T, kPack> keys[2][kSpans] = {};
  const auto read_keys = [&] {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (!kTogether) {
#pragma unroll
        for (int s = 0; s < kSpans; ++s) keys[i][s] = {};
      }
      const int from = eighth + 8 * i;
      const long long place = __shfl_sync(0xffffffffu, k_place, from);
      const long long step = Whole ? 1 : p.k.step[3];
      read_row<Whole, 32>(keys[i], k + (place + kPack * four * step), step, seen >> from & 1 ? dim - kPack * four : 0);
    }
  };
  // Values 2 four, 2 four + 1 and those 8 further, zeros where nobody sees them: their weights are 0.
  Held<T, kPack> values[4][kHalves] = {};
  const auto read_values = [&] {
    if (!kTogether || seen != 0xffffffffu) {
#pragma unroll
      for (int i = 0; i < 4 * kHalves; ++i) values[i / kHalves][i % kHalves] = {};
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = 2 * four + i % 2 + 8 * (i / 2);
      const long long place = __shfl_sync(0xffffffffu, v_place, from);
      const long long step = Whole ? 1 : p.v.step[3];
      read_row<Whole, 64>(values[i], v + (place + kPack * eighth * step), step,
                          seen >> from & 1 ? dim - kPack * eighth : 0);
    }
  };
  find(0);
  read_keys();
  if (kTogether) read_values();

  // The lane's row of queries, and the keys that it sees. What it has of the row waits in shared memory, where the
  // warp's totals will be.
  const int queries = static_cast<int>(p.queries), group = static_cast<int>(p.group), all_rows = group * queries;
  const int first_row = static_cast<int>(blockIdx.x - head * tiles) * kRows, row = first_row + eighth;
  const int member = queries == 1 ? row : row / queries, query = row - member * queries;
  const bool is_row = row < all_rows;
  const int stands = parts.length - queries + query, end = is_row ? stands + 1 : 0;
  const int from = p.more.behind < stands ? stands - static_cast<int>(p.more.behind) : 0;
  Held<T, kPack> *const own = reinterpret_cast<Held<T, kPack> *>(totals[warp]) + lane;
  const long long place = p.q.start + batch * p.q.step[0] + (head * group + member) * p.q.step[1] + query * p.q.step[2];
  const long long step = Whole ? 1 : p.q.step[3];
  Held<T, kPack> some[kSpans] = {};
  read_row<Whole, 32>(some, q + (place + kPack * four * step), step, is_row ? dim - kPack * four : 0);
#pragma unroll
  for (int s = 0; s < kSpans; ++s) own[32 * s] = some[s];

  const float scale = static_cast<float>(p.more.scale), cap = static_cast<float>(p.more.cap);
  float largest = minus_infinity, sum = 0.0f;
  float total[kHalves][4][4] = {};  // of rows 2 four and 2 four + 1, elements 64 h + 8 eighth + 2 j and the next
#pragma unroll 1
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (kTogether) find(chunk + 1);
    float score[2][2][4] = {};
#pragma unroll
    for (int s = 0; s < kSpans; ++s) {
      const Words<4> words = own[32 * s].bits.words;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const Pair a[4] = {words.v[2 * j], 0, words.v[2 * j + 1], 0};
          const Pair b[2] = {keys[i][s].bits.words.v[2 * j], keys[i][s].bits.words.v[2 * j + 1]};
          mma(T{}, score[i][j], a, b);
        }
      }
    }
    if (kTogether)
      read_keys();
    else
      read_values();

    float weight[4], now = largest;
#pragma unroll
    for (int i = 0; i < 4; ++i) weight[i] = (score[i / 2][0][i % 2] + score[i / 2][1][i % 2]) * scale;
    if (cap != 0.0f) {
#pragma unroll
      for (int i = 0; i < 4; ++i) weight[i] = cap * tanhf(weight[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = first_key + chunk * kChunk<T> + 2 * four + i % 2 + 8 * (i / 2);
      if (at < from || at >= end) weight[i] = minus_infinity;
      now = fmaxf(now, weight[i]);
    }
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
    const float base = now == minus_infinity ? 0.0f : now, factor = exp2f(largest - base);
    largest = now, sum *= factor;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weight[i] = exp2f(weight[i] - base);
      sum += weight[i];
    }
    Pair high[2], low[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      high[i] = pair_of<T>(weight[2 * i], weight[2 * i + 1]);
      low[i] = pair_of<T>(rest_of<T>(weight[2 * i], high[i], 0), rest_of<T>(weight[2 * i + 1], high[i], 1));
    }
    if (__any_sync(0xffffffffu, factor != 1.0f)) {
      const float factors[2] = {__shfl_sync(0xffffffffu, factor, 8 * four),
                                __shfl_sync(0xffffffffu, factor, 8 * four + 4)};
#pragma unroll
      for (int h = 0; h < kHalves; ++h)
#pragma unroll
        for (int i = 0; i < 16; ++i) total[h][i / 4][i % 4] *= factors[i % 2];
    }
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        Pair a[4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const unsigned one = values[2 * i][h].bits.words.v[j], two = values[2 * i + 1][h].bits.words.v[j];
          a[2 * i] = (one & 0xffffu) | two << 16;
          a[2 * i + 1] = one >> 16 | (two & 0xffff0000u);
        }
        mma(T{}, total[h][j], a, high);
        mma(T{}, total[h][j], a, low);
      }
    }
    if (kTogether) {
      read_values();
    } else {
      find(chunk + 1);
      read_keys();
    }
  }

  // Sums of the warps, in their order, each as if it had found the largest of all scores.
#pragma unroll
  for (int lanes = 1; lanes < 4; lanes *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (four == 0) warp_largest[warp][eighth] = largest, warp_sum[warp][eighth] = sum;
  __syncthreads();
  const int rows = all_rows - first_row < kRows ? all_rows - first_row : kRows;
  const int max_rows = all_rows < kRows ? all_rows : kRows;
  float *const to =
      work + ((static_cast<long long>(batch) * gridDim.x + blockIdx.x) * p.parts + part) * size_of_part(max_rows, Dim);
  const auto largest_of = [&](int row) {
    float row_maximum = warp_largest[0][row];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) row_maximum = fmaxf(row_maximum, warp_largest[w][row]);
    return row_maximum;
  };
  const auto factor_of = [&](int warp, int row, float row_maximum) {
    return exp2f(warp_largest[warp][row] - (row_maximum == minus_infinity ? 0.0f : row_maximum));
  };
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float factor = factor_of(warp, 2 * four + r, largest_of(2 * four + r));
#pragma unroll
    for (int i = 0; i < 2 * kHalves; ++i) {
      const auto &some = total[i / 2][2 * (i % 2)], &next = total[i / 2][2 * (i % 2) + 1];
      const Pack<float, 4> numbers = {some[r] * factor, some[r + 2] * factor, next[r] * factor, next[r + 2] * factor};
      store_pack<4>(&totals[warp][2 * four + r][64 * (i / 2) + kPack * eighth + 4 * (i % 2)], numbers);
    }
  }
  if (thread < rows) {
    const float row_maximum = largest_of(thread);
    float whole = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) whole = fmaf(factor_of(w, thread, row_maximum), warp_sum[w][thread], whole);
    to[max_rows * Dim + thread] = row_maximum, to[max_rows * (Dim + 1) + thread] = whole;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = thread * 4; i < rows * Dim; i += kThreads * 4) {
    Pack<float, 4> result = load_pack<4>(&totals[0][0][0] + i);
#pragma unroll
    for (int w = 1; w < kWarps; ++w) {
      const Pack<float, 4> part_of_warp = load_pack<4>(&totals[w][0][0] + i);
#pragma unroll
      for (int e = 0; e < 4; ++e) result.v[e] += part_of_warp.v[e];
    }
    store_pack<4>(to + i, result);
  }
}

}  // namespace pk
