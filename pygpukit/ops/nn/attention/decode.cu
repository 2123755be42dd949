// decode.cu: attention of a few queries on a long cache. A block takes kSplit keys of one head, for kRows of the rows that
// look at them: the queries of every query head that shares the head of keys, so that keys and values are read once for
// all of those. Splits begin at multiples of kSplit, and the block that ends last combines them in their order: the bits
// of a row depend on its own keys alone, not on the batch, the order of blocks or how the cache is laid out.
#include "attention.cuh"
#include "report.cuh"
#include "rows.cuh"

namespace pk {

struct DecodeAttention {
  long long group, key_heads;     // query heads that share a head of keys, and how many such heads there are
  long long queries, keys, dim;   // keys: that a batch element can have at most
  long long page, pages;          // positions of a page, and how many pages there are; without a table one each
  long long has_table, table_step;
  long long length_step;
  long long splits;
  long long whole;                // rows of the cache are dense, of whole 16 bytes
  AttentionPlace q, k, v, out;    // batch of k and v: their pages
  AttentionExtras more;
};

constexpr int kRows = 8, kSplit = 256, kThreads = 256, kLanes = 8, kWarps = kThreads / 32;
constexpr int kStep = kThreads / kLanes;  // keys whose scores are computed at a time
constexpr int kWide = 4096;               // floats of shared memory that queries, then totals, pass through
constexpr float kUnseen = -1.0f;          // as a weight

// Packs of some keys' rows: `between` keys and `apart` elements lie from one to the next. Zeros where there is nothing: no
// key from lowest to below highest, no page, no such column. Whole: rows are dense, of whole packs; then all loads of a
// thread are on their way together.
template <bool Whole, int Keys, int Count, int N, class T>
__device__ __forceinline__ void read_rows(Held<T, N> (&packs)[Keys][Count], const T *data, const long long *places,
                                          int key, int between, int lowest, int highest, long long step, int column,
                                          int apart, long long dim) {
#pragma unroll
  for (int t = 0; t < Keys; ++t, key += between) {
    const bool inside = key >= lowest && key < highest && places[key] >= 0;
    const T *row = data + (inside ? places[key] : 0);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int d = column + i * apart;
      Pack<T, N> pack = {};
      if constexpr (Whole) {
        packs[t][i].keep(pack);
        if (inside && d < dim) packs[t][i].load(row + d);
      } else {
        for (int j = 0; j < N; ++j) {
          if (inside && d + j < dim) pack.v[j] = row[(d + j) * step];
        }
        packs[t][i].keep(pack);
      }
    }
  }
}

// work: of every split its rows' totals, largest scores and sums; counters: zeros, one for the splits of some rows.
template <class T, int Dim>
__global__ void __launch_bounds__(kThreads, 2)
    attend_few(const T *q, const T *k, const T *v, T *out, const int *lengths, const int *table, const float *sinks,
               float *work, int *counters, long long *report, const __grid_constant__ DecodeAttention p) {
  constexpr int N = per_load<T>();
  alignas(16) __shared__ float wide[kWide];
  __shared__ float weights[kRows][kSplit];
  __shared__ long long k_row[kSplit], v_row[kSplit];  // where each key lies; below 0: on no page
  __shared__ float row_largest[kRows], row_sum[kRows];
  __shared__ int row_first[kRows], row_end[kRows];  // keys of the split that a row sees
  __shared__ bool is_last;
  const int thread = threadIdx.x, lane = thread % kLanes;
  const float minus_infinity = -__uint_as_float(0x7f800000u);

  // Divisions of 64 bits take a hundred instructions each: what is divided here has 32.
  const unsigned queries = static_cast<unsigned>(p.queries), group = static_cast<unsigned>(p.group);
  const unsigned splits = static_cast<unsigned>(p.splits), key_heads = static_cast<unsigned>(p.key_heads);
  const unsigned all_rows = group * queries, tiles = (all_rows + kRows - 1) / kRows;
  const unsigned split = blockIdx.x % splits, owner = blockIdx.x / splits;
  const unsigned first_row = owner % tiles * kRows;
  const unsigned head = owner / tiles % key_heads, batch = owner / tiles / key_heads;
  const int rows = all_rows - first_row < kRows ? static_cast<int>(all_rows - first_row) : kRows;

  const int given = lengths[batch * p.length_step];
  const long long length = given < 0 ? 0 : given < p.keys ? given : p.keys;
  const auto first_of = [&](long long query) {
    const long long first = length - p.queries + query - p.more.behind;
    return first < 0 ? 0 : first;
  };
  const auto end_of = [&](long long query) {
    const long long end = length - p.queries + query + 1;
    return end < 0 ? 0 : end;
  };
  const long long low = first_of(0);
  const long long first_split = length == 0 ? 0 : low / kSplit, last_split = length == 0 ? 0 : (length - 1) / kSplit;
  if (split < first_split || split > last_split) return;
  const long long begin = static_cast<long long>(split) * kSplit;

  const auto head_of = [&](int row) { return head * group + (first_row + row) / queries; };
  const auto query_of = [&](int row) { return (first_row + row) % queries; };
  const auto in_split = [&](long long key) {
    return key < begin ? 0 : key - begin < kSplit ? static_cast<int>(key - begin) : kSplit;
  };
  const int lowest = in_split(low), highest = in_split(length);

  static_assert(kThreads == kSplit, "a thread finds the place of one key");
  if (thread >= lowest && thread < highest) {
    const unsigned key = split * kSplit + thread;
    long long page = batch, place = key;
    if (p.has_table) {
      const unsigned size = static_cast<unsigned>(p.page);
      page = table[batch * p.table_step + key / size], place = key % size;
      if (page < 0 || page >= p.pages) {
        report_index(report, page, 0, p.pages);
        page = -1;
      }
    }
    k_row[thread] = page < 0 ? -1 : p.k.start + page * p.k.step[0] + head * p.k.step[1] + place * p.k.step[2];
    v_row[thread] = page < 0 ? -1 : p.v.start + page * p.v.step[0] + head * p.v.step[1] + place * p.v.step[2];
  }
  for (int i = thread; i < rows * Dim; i += kThreads) {
    const int row = i / Dim, d = i % Dim;
    const T *place = q + p.q.start + batch * p.q.step[0] + head_of(row) * p.q.step[1] + query_of(row) * p.q.step[2];
    wide[i] = d < p.dim ? widen(place[d * p.q.step[3]]) : 0.0f;
  }
  if (thread < kRows) {
    row_first[thread] = thread < rows ? in_split(first_of(query_of(thread))) : 0;
    row_end[thread] = thread < rows ? in_split(end_of(query_of(thread))) : 0;
  }
  __syncthreads();

  // Scores: kLanes threads share a key, and each holds as many keys at a time as keep memory busy.
  constexpr int kPacks = Dim / (kLanes * N), kTogether = kPacks < 8 ? 8 / kPacks : 1;
  const float scale = static_cast<float>(p.more.scale);
  for (int first = thread / kLanes; first < kSplit; first += kStep * kTogether) {
    Held<T, N> packs[kTogether][kPacks];
    if (p.whole) {
      read_rows<true>(packs, k, k_row, first, kStep, lowest, highest, p.k.step[3], lane * N, kLanes * N, p.dim);
    } else {
      read_rows<false>(packs, k, k_row, first, kStep, lowest, highest, p.k.step[3], lane * N, kLanes * N, p.dim);
    }
    float element[kTogether][kPacks][N];
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) widen_pack(packs[t][j].pack(), element[t][j]);
    }
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
      float dot[kTogether] = {};
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int four = 0; four < N; four += 4) {
          const Pack<float, 4> query = load_pack<4>(wide + row * Dim + (j * kLanes + lane) * N + four);
#pragma unroll
          for (int t = 0; t < kTogether; ++t) {
#pragma unroll
            for (int e = 0; e < 4; ++e) dot[t] = fmaf(query.v[e], element[t][j][four + e], dot[t]);
          }
        }
      }
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
#pragma unroll
        for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) dot[t] += __shfl_xor_sync(0xffffffffu, dot[t], lanes);
        if (lane == row % kLanes) weights[row][first + t * kStep] = dot[t] * scale;
      }
    }
  }
  __syncthreads();

  for (int row = thread / 32; row < rows; row += kWarps) {
    const int from = row_first[row], end = row_end[row];
    float largest = minus_infinity, sum = 0.0f;
    for (int key = thread % 32; key < kSplit; key += 32) {
      if (p.more.cap != 0) weights[row][key] = adjusted(p.more, weights[row][key], nullptr, 0, 0);
      if (key >= from && key < end) largest = fmaxf(largest, weights[row][key]);
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    const float base = largest == minus_infinity ? 0.0f : largest;
    for (int key = thread % 32; key < kSplit; key += 32) {
      const bool seen = key >= from && key < end;
      const float weight = seen ? exp2f(weights[row][key] - base) : kUnseen;
      weights[row][key] = weight;
      if (seen) sum += weight;
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (thread % 32 == 0) row_largest[row] = largest, row_sum[row] = sum;
  }
  __syncthreads();

  // Values: kColumns threads share a key, and each takes as many neighbouring keys as there are such columns.
  constexpr int kColumns = Dim / N, kKeys = kColumns, kFour = 4;
  static_assert(kThreads / kColumns * kKeys == kSplit && kKeys % kFour == 0, "parts of the keys are whole");
  const int column = thread % kColumns * N, first_key = thread / kColumns * kKeys;
  float total[kRows][N] = {};
#pragma unroll 2
  for (int key = first_key; key < first_key + kKeys; key += kFour) {
    Held<T, N> packs[kFour][1];
    if (p.whole) {
      read_rows<true>(packs, v, v_row, key, 1, lowest, highest, p.v.step[3], column, N, p.dim);
    } else {
      read_rows<false>(packs, v, v_row, key, 1, lowest, highest, p.v.step[3], column, N, p.dim);
    }
#pragma unroll
    for (int t = 0; t < kFour; ++t) {
      float element[N];
      widen_pack(packs[t][0].pack(), element);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (row >= rows) break;
        const float weight = weights[row][key + t];
        if (weight < 0.0f) continue;  // unseen: the value may be anything
#pragma unroll
        for (int e = 0; e < N; ++e) total[row][e] = fmaf(weight, element[e], total[row][e]);
      }
    }
  }

  // Parts of a warp by shuffles, then those of the warps in their order, some rows at a time.
  constexpr int kSpan = kColumns < 32 ? 32 : kColumns, kParts = kThreads / kSpan;
  constexpr int kFit = kWide / (kParts * Dim), kBatch = kFit < kRows ? kFit : kRows;
  const int most = all_rows < kRows ? static_cast<int>(all_rows) : kRows, size = most * (Dim + 2);
  float *own = work + (static_cast<long long>(owner) * splits + split) * size;
#pragma unroll
  for (int begin_row = 0; begin_row < kRows; begin_row += kBatch) {
    if (begin_row < rows) {
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kBatch; ++r) {
#pragma unroll
        for (int e = 0; e < N; ++e) {
          float sum = total[begin_row + r][e];
#pragma unroll
          for (int lanes = 16; lanes >= kColumns; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
          if (thread % kSpan < kColumns) wide[(thread / kSpan * kBatch + r) * Dim + column + e] = sum;
        }
      }
      __syncthreads();
      const int count = (rows - begin_row < kBatch ? rows - begin_row : kBatch) * Dim;
      for (int i = thread; i < count; i += kThreads) {
        float sum = 0.0f;
#pragma unroll
        for (int part = 0; part < kParts; ++part) sum += wide[part * kBatch * Dim + i];
        own[begin_row * Dim + i] = sum;
      }
    }
  }
  if (thread < rows) own[most * Dim + thread] = row_largest[thread], own[most * (Dim + 1) + thread] = row_sum[thread];
  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(counters + owner, 1) == last_split - first_split;
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  const volatile float *parts = work + static_cast<long long>(owner) * splits * size;
  for (int i = thread; i < rows * Dim; i += kThreads) {
    const int row = i / Dim, d = i % Dim;
    if (d >= p.dim) continue;
    const float sink = p.more.has_sinks ? sinks[head_of(row)] * kLog2E : minus_infinity;
    float largest = sink;
    for (long long s = first_split; s <= last_split; ++s) largest = fmaxf(largest, parts[s * size + most * Dim + row]);
    const float base = largest == minus_infinity ? 0.0f : largest;
    float result = 0.0f, sum = exp2f(sink - base);
    for (long long s = first_split; s <= last_split; ++s) {
      const float shrink = exp2f(parts[s * size + most * Dim + row] - base);
      result += shrink * parts[s * size + i];
      sum += shrink * parts[s * size + most * (Dim + 1) + row];
    }
    T *place = out + p.out.start + batch * p.out.step[0] + head_of(row) * p.out.step[1];
    place[query_of(row) * p.out.step[2] + d * p.out.step[3]] = convert<T>::from(sum == 0.0f ? 0.0f : result / sum);
  }
}

}  // namespace pk
