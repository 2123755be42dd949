// decode.cu: attention of a few queries on a long cache (decode.cuh) on CUDA cores, in float32; and the sum of the
// parts.
#include "decode.cuh"
#include "overlap.cuh"
#include "report.cuh"

namespace pk {

constexpr int kSplit = kChunk<float>, kThreads = 256, kLanes = 8, kWarps = kThreads / 32;
constexpr int kStep = kThreads / kLanes;  // keys whose scores are computed at a time
constexpr int kWide = 4096;               // floats of shared memory that queries, then totals, pass through
constexpr float kUnseen = -1.0f;          // as a weight

// N elements of a row at `place` from `column` on, zeros where there is no row (place below 0) or no such column.
// Whole: rows are dense, of whole packs.
template <bool Whole, int N, class T>
__device__ __forceinline__ void read_row(Held<T, N> &held, const T *data, long long place, long long step, int column,
                                         int dim) {
  const bool there = place >= 0;
  const T *row = data + (there ? place : 0);
  Pack<T, N> pack = {};
  if constexpr (Whole) {
    held.keep(pack);
    if (there && column < dim) held.load(row + column);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (there && column + j < dim) pack.v[j] = row[(column + j) * step];
    }
    held.keep(pack);
  }
}

// Sums over kLanes lanes of several values at once: each lane is left with those from lane * Count / kLanes on. Lanes:
// that are still to be added. A template, not a loop: its bounds are known where registers are given out.
template <int Lanes = kLanes, int Count>
__device__ __forceinline__ void sum_lanes(float (&value)[Count], int lane) {
  static_assert(Count % kLanes == 0, "every lane is left with as many");
  constexpr int kApart = Lanes / 2, kHalf = Count * kApart / kLanes;
  const bool upper = lane & kApart;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float sent = upper ? value[i] : value[i + kHalf];
    value[i] = (upper ? value[i + kHalf] : value[i]) + __shfl_xor_sync(0xffffffffu, sent, kApart);
  }
  if constexpr (kApart > 1) sum_lanes<kApart>(value, lane);
}

// Blocks of a multiprocessor, for as many elements of queries: with more of them registers would spill.
template <int Elements, bool Whole>
constexpr int kResident = Elements <= 256             ? 3
                          : Whole || Elements <= 1024 ? 2
                                                      : 1;

// work: of every part its rows' totals, largest scores and sums. Whole: rows of the cache are dense, of whole 16 bytes.
template <class T, int Dim, int kRows, bool Whole>
__global__ void __launch_bounds__(kThreads, kResident<kRows * Dim, Whole>)
    attend_decode(const T *q, const T *k, const T *v, const int *lengths, const int *table, float *work,
                  long long *report, const __grid_constant__ DecodeAttention p) {
  constexpr int N = per_load<T>();
  alignas(16) __shared__ float wide[kWide];
  __shared__ float weights[kRows][kSplit];
  __shared__ long long k_row[kSplit], v_row[kSplit];  // where each key lies; below 0 where nobody sees it
  __shared__ float row_largest[kRows], row_sum[kRows];
  __shared__ int row_first[kRows], row_end[kRows];  // keys of the split that a row sees
  const int thread = threadIdx.x, lane = thread % kLanes, warp_lane = thread % 32;
  const float minus_infinity = -__uint_as_float(0x7f800000u);
  let_next_begin();

  // Divisions of 64 bits take a hundred instructions each: what is divided here has 32. The blocks that read the same
  // keys are neighbours.
  const unsigned queries = static_cast<unsigned>(p.queries), group = static_cast<unsigned>(p.group);
  const unsigned splits = static_cast<unsigned>(p.parts), key_heads = static_cast<unsigned>(p.key_heads);
  const unsigned all_rows = group * queries, tiles = (all_rows + kRows - 1) / kRows;
  const unsigned tile = blockIdx.x % tiles, split = blockIdx.x / tiles % splits, pair = blockIdx.x / tiles / splits;
  const unsigned first_row = tile * kRows, head = pair % key_heads, batch = pair / key_heads;
  const int rows = all_rows - first_row < kRows ? static_cast<int>(all_rows - first_row) : kRows;

  const Parts seen = parts_of<T>(lengths, batch, p);
  const long long length = seen.length, low = seen.low;
  const auto first_of = [&](long long query) {
    const long long first = length - p.queries + query - p.more.behind;
    return first < 0 ? 0 : first;
  };
  const auto end_of = [&](long long query) {
    const long long end = length - p.queries + query + 1;
    return end < 0 ? 0 : end;
  };
  if (static_cast<int>(split) >= seen.chunks) return;
  const long long begin = static_cast<long long>(seen.first + split) * kSplit;

  const auto head_of = [&](int row) { return head * group + (first_row + row) / queries; };
  const auto query_of = [&](int row) { return (first_row + row) % queries; };
  const auto in_split = [&](long long key) {
    return key < begin ? 0 : key - begin < kSplit ? static_cast<int>(key - begin) : kSplit;
  };
  const int lowest = in_split(low), highest = in_split(length), dim = static_cast<int>(p.dim);

  static_assert(kThreads >= kSplit, "a thread finds the place of one key");
  if (thread < kSplit) k_row[thread] = v_row[thread] = -1;
  if (thread >= lowest && thread < highest) {
    const unsigned key = static_cast<unsigned>(begin) + thread;
    long long page = batch, place = key;
    if (p.has_table) {
      const unsigned size = static_cast<unsigned>(p.page);
      page = table[batch * p.table_step + key / size], place = key % size;
    }
    if (page >= 0 && page < p.pages) {
      k_row[thread] = p.k.start + page * p.k.step[0] + head * p.k.step[1] + place * p.k.step[2];
      v_row[thread] = p.v.start + page * p.v.step[0] + head * p.v.step[1] + place * p.v.step[2];
    } else {
      report_index(report, page, 0, p.pages);
    }
  }
  for (int i = thread; i < kRows * Dim; i += kThreads) {
    const int row = i / Dim, d = i % Dim;
    float element = 0.0f;
    if (row < rows && d < p.dim) {
      const long long place =
          p.q.start + batch * p.q.step[0] + head_of(row) * p.q.step[1] + query_of(row) * p.q.step[2];
      element = widen(q[place + d * p.q.step[3]]);
    }
    wide[i] = element;
  }
  if (thread < kRows) {
    row_first[thread] = thread < rows ? in_split(first_of(query_of(thread))) : 0;
    row_end[thread] = thread < rows ? in_split(end_of(query_of(thread))) : 0;
  }
  __syncthreads();

  // Scores: kLanes threads share a key. The next kAhead packs are on their way while one is computed with: more of them
  // would spill.
  constexpr int kPacks = Dim / (kLanes * N), kTogether = kPacks == 1 ? 4 : 2, kDots = kRows * kTogether;
  constexpr int kMaxAhead = kRows * Dim <= 1024 && Whole ? 4 : 2, kAhead = kPacks < kMaxAhead ? kPacks : kMaxAhead;
  const float scale = static_cast<float>(p.more.scale);
  Held<T, N> keys[kTogether][kAhead];
#pragma unroll
  for (int t = 0; t < kTogether; ++t) {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int key = thread / kLanes + t * kStep;
      read_row<Whole>(keys[t][j], k, k_row[key], p.k.step[3], (j * kLanes + lane) * N, dim);
    }
  }
#pragma unroll 1
  for (int first = thread / kLanes; first < kSplit; first += kStep * kTogether) {
    const bool more = first + kStep * kTogether < kSplit;
    float dot[kDots] = {};
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      float element[kTogether][N];
      asm volatile("" ::: "memory");
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
        widen_pack(keys[t][j % kAhead].pack(), element[t]);
        const int later = j + kAhead;
        const long long place = later < kPacks ? k_row[first + t * kStep]
                                : more         ? k_row[first + (kTogether + t) * kStep]
                                               : -1;
        read_row<Whole>(keys[t][j % kAhead], k, place, p.k.step[3], (later % kPacks * kLanes + lane) * N, dim);
      }
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
#pragma unroll
        for (int four = 0; four < N; four += 4) {
          const Pack<float, 4> query = load_pack<4>(wide + row * Dim + (j * kLanes + lane) * N + four);
#pragma unroll
          for (int t = 0; t < kTogether; ++t) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              dot[row * kTogether + t] = fmaf(query.v[e], element[t][four + e], dot[row * kTogether + t]);
            }
          }
        }
      }
    }
    sum_lanes(dot, lane);
#pragma unroll
    for (int i = 0; i < kDots / kLanes; ++i) {
      const int which = lane * (kDots / kLanes) + i;
      weights[which / kTogether][first + which % kTogether * kStep] = dot[i] * scale;
    }
  }

  // Values: kColumns threads share a key, and each takes some neighbouring keys. The first are on their way while the
  // scores become weights.
  constexpr int kColumns = Dim / N, kKeys = kSplit * kColumns / kThreads, kFour = kKeys < 4 ? kKeys : 4;
  static_assert(kThreads / kColumns * kKeys == kSplit && kKeys % kFour == 0, "parts of the keys are whole");
  const int column = thread % kColumns * N, first_key = thread / kColumns * kKeys;
  Held<T, N> values[kFour];
#pragma unroll
  for (int t = 0; t < kFour; ++t) {
    read_row<Whole>(values[t], v, v_row[first_key + t], p.v.step[3], column, dim);
  }
  __syncthreads();

  if (thread / 32 < rows) {
    const int row = thread / 32, from = row_first[row], end = row_end[row];
    float largest = minus_infinity, sum = 0.0f, score[kSplit / 32];
#pragma unroll
    for (int i = 0; i < kSplit / 32; ++i) {
      const int key = warp_lane + i * 32;
      score[i] = weights[row][key];
      if (p.more.cap != 0) score[i] = adjusted(p.more, score[i], nullptr, 0, 0);
      if (key >= from && key < end) largest = fmaxf(largest, score[i]);
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    const float base = largest == minus_infinity ? 0.0f : largest;
#pragma unroll
    for (int i = 0; i < kSplit / 32; ++i) {
      const int key = warp_lane + i * 32;
      const bool seen = key >= from && key < end;
      const float weight = exp2f(score[i] - base);
      weights[row][key] = seen ? weight : kUnseen;
      if (seen) sum += weight;
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (warp_lane == 0) row_largest[row] = largest, row_sum[row] = sum;
  }
  __syncthreads();

  float total[kRows][N] = {};
#pragma unroll 1
  for (int key = first_key; key < first_key + kKeys; key += kFour) {
    const bool more = key + kFour < first_key + kKeys;
#pragma unroll
    for (int t = 0; t < kFour; ++t) {
      float element[N];
      widen_pack(values[t].pack(), element);
      read_row<Whole>(values[t], v, more ? v_row[key + kFour + t] : -1, p.v.step[3], column, dim);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const float weight = weights[row][key + t];
        if (queries > 1 && weight < 0.0f) continue;  // unseen: the value may be anything; of one query it is zeros
#pragma unroll
        for (int e = 0; e < N; ++e) total[row][e] = fmaf(weight, element[e], total[row][e]);
      }
    }
  }

  // Parts of a warp by shuffles, then those of the warps in their order, some rows at a time.
  constexpr int kSpan = kColumns < 32 ? 32 : kColumns, kParts = kThreads / kSpan;
  constexpr int kFit = kWide / (kParts * Dim), kBatch = kFit < kRows ? kFit : kRows;
  const int max_rows = all_rows < kRows ? static_cast<int>(all_rows) : kRows;
  const long long owner = static_cast<long long>(pair) * tiles + tile;
  float *own = work + (owner * splits + split) * size_of_part(max_rows, Dim);
#pragma unroll
  for (int begin_row = 0; begin_row < kRows; begin_row += kBatch) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kBatch; ++r) {
#pragma unroll
      for (int four = 0; four < N; four += 4) {
        Pack<float, 4> sum;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sum.v[e] = total[begin_row + r][four + e];
#pragma unroll
          for (int lanes = 16; lanes >= kColumns; lanes /= 2) sum.v[e] += __shfl_xor_sync(0xffffffffu, sum.v[e], lanes);
        }
        if (thread % kSpan < kColumns) store_pack<4>(&wide[(thread / kSpan * kBatch + r) * Dim + column + four], sum);
      }
    }
    __syncthreads();
    for (int i = thread; i < kBatch * Dim; i += kThreads) {
      float sum = 0.0f;
#pragma unroll
      for (int part = 0; part < kParts; ++part) sum += wide[part * kBatch * Dim + i];
      if (begin_row + i / Dim < rows) own[begin_row * Dim + i] = sum;
    }
  }
  if (thread < rows)
    own[max_rows * Dim + thread] = row_largest[thread], own[max_rows * (Dim + 1) + thread] = row_sum[thread];
}

// The parts of a row, added in their order: a block for each row, of a pair of batch element and head of keys the rows
// in the order of the blocks before. What some parts have is asked for at once.
template <class T, int Dim>
__global__ void __launch_bounds__(Dim) combine_parts(const float *work, const int *lengths, const float *sinks, T *out,
                                                     int rows_of_block, const __grid_constant__ DecodeAttention p) {
  constexpr int kTogether = 32;
  const int thread = threadIdx.x, lane = thread % 32;
  const unsigned queries = static_cast<unsigned>(p.queries), group = static_cast<unsigned>(p.group);
  const unsigned key_heads = static_cast<unsigned>(p.key_heads), all_rows = group * queries, max_rows = rows_of_block;
  const unsigned pair = blockIdx.x / all_rows, row_of_pair = blockIdx.x % all_rows, row = row_of_pair % max_rows;
  const unsigned batch = pair / key_heads, head = pair % key_heads * group + row_of_pair / queries;
  const long long owner = pair * ((all_rows + max_rows - 1) / max_rows) + row_of_pair / max_rows,
                  size = size_of_part(rows_of_block, Dim);
  const int count = parts_of<T>(lengths, batch, p).count();
  const float minus_infinity = -__uint_as_float(0x7f800000u);
  const float sink = p.more.has_sinks ? sinks[head] * kLog2E : minus_infinity;
  await_previous();
  const float *parts = work + owner * p.parts * size, *values = parts + row * Dim + thread;
  const float *largest_of = parts + max_rows * Dim + row, *sum_of = parts + max_rows * (Dim + 1) + row;
  float largest = sink, result = 0.0f, sum = 0.0f;
  for (int chunk = 0; chunk < count; chunk += kTogether) {
    float value[kTogether];
#pragma unroll
    for (int s = 0; s < kTogether; ++s) value[s] = chunk + s < count ? values[(chunk + s) * size] : 0.0f;
    const bool there = chunk + lane < count;
    const float own = there ? largest_of[(chunk + lane) * size] : minus_infinity;
    const float own_sum = there ? sum_of[(chunk + lane) * size] : 0.0f;
    if (chunk == 0) {  // the largest of all
      largest = fmaxf(largest, own);
      for (int s = kTogether + lane; s < count; s += 32) largest = fmaxf(largest, largest_of[s * size]);
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
      if (largest == minus_infinity) break;
      sum = exp2f(sink - largest);
    }
    const float weight = exp2f(own - largest), weighted = weight * own_sum;
#pragma unroll
    for (int s = 0; s < kTogether; ++s) {
      if (s % 8 == 0 && chunk + s >= count) break;
      result = fmaf(__shfl_sync(0xffffffffu, weight, s), value[s], result);
      sum += __shfl_sync(0xffffffffu, weighted, s);
    }
  }
  if (thread >= p.dim) return;
  const long long place =
      p.out.start + batch * p.out.step[0] + head * p.out.step[1] + row_of_pair % queries * p.out.step[2];
  out[place + thread * p.out.step[3]] = convert<T>::from(sum == 0.0f ? 0.0f : result / sum);
}

}  // namespace pk
