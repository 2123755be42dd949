// decode.cu: attention of a few queries on a long cache. A block takes kSplit keys of one head, for all the rows that
// look at them: the queries of every query head that shares the head of keys, so that keys and values are read once for
// kRows rows. Splits begin at multiples of kSplit, and the block that ends last combines them in their order: the bits
// of a row depend on its own keys alone, not on the batch, the order of blocks or how the cache is laid out.
#include "attention.cuh"
#include "report.cuh"

namespace pk {

struct DecodeAttention {
  long long group, key_heads;     // query heads that share a head of keys, and how many such heads there are
  long long queries, keys, dim;   // keys: that a batch element can have at most
  long long page, pages;          // positions of a page, and how many pages there are; without a table one each
  long long has_table, table_step;
  long long length_step;
  long long splits;
  AttentionPlace q, k, v, out;    // batch of k and v: their pages
  AttentionExtras more;
};

constexpr int kRows = 16, kSplit = 256, kThreads = 256, kLanes = 8, kWarps = kThreads / 32;

// work: of every split its rows' totals, largest scores and sums; counters: zeros, one for the splits of some rows.
template <class T, int Dim>
__global__ void __launch_bounds__(kThreads)
    attend_few(const T *q, const T *k, const T *v, T *out, const int *lengths, const int *table, const float *sinks,
               float *work, int *counters, long long *report, const __grid_constant__ DecodeAttention p) {
  __shared__ float wide[kRows * kThreads];  // first the queries, then parts of the totals
  __shared__ float weights[kRows][kSplit];
  __shared__ float row_largest[kRows], row_sum[kRows];
  __shared__ int row_first[kRows], row_end[kRows];  // keys of the split that a row sees
  __shared__ bool is_last;
  const int thread = threadIdx.x, lane = thread % kLanes;
  const float minus_infinity = -__uint_as_float(0x7f800000u);

  const long long all_rows = p.group * p.queries, tiles = (all_rows + kRows - 1) / kRows;
  const long long split = blockIdx.x % p.splits, owner = blockIdx.x / p.splits;
  const long long first_row = owner % tiles * kRows;
  const long long head = owner / tiles % p.key_heads, batch = owner / tiles / p.key_heads;
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
  const long long begin = split * kSplit;

  const auto head_of = [&](int row) { return head * p.group + (first_row + row) / p.queries; };
  const auto query_of = [&](int row) { return (first_row + row) % p.queries; };
  const auto in_split = [&](long long key) {
    return key < begin ? 0 : key - begin < kSplit ? static_cast<int>(key - begin) : kSplit;
  };
  const auto page_of = [&](long long key) -> long long {
    if (!p.has_table) return batch;
    const long long page = table[batch * p.table_step + key / p.page];
    if (page >= 0 && page < p.pages) return page;
    report_index(report, page, 0, p.pages);
    return -1;
  };

  for (int i = thread; i < rows * Dim; i += kThreads) {
    const int row = i / Dim, d = i % Dim;
    const T *place = q + p.q.start + batch * p.q.step[0] + head_of(row) * p.q.step[1] + query_of(row) * p.q.step[2];
    wide[i] = d < p.dim ? widen(place[d * p.q.step[3]]) : 0.0f;
  }
  if (thread < rows) {
    row_first[thread] = in_split(first_of(query_of(thread)));
    row_end[thread] = in_split(end_of(query_of(thread)));
  }
  __syncthreads();

  const float scale = static_cast<float>(p.more.scale);
  const int lowest = in_split(low), highest = in_split(length);
  for (int key = thread / kLanes; key < kSplit; key += kThreads / kLanes) {
    float element[Dim / kLanes] = {};
    if (key >= lowest && key < highest) {
      const long long page = page_of(begin + key);
      const T *place = k + p.k.start + page * p.k.step[0] + head * p.k.step[1] + (begin + key) % p.page * p.k.step[2];
#pragma unroll
      for (int j = 0; j < Dim / kLanes; ++j) {
        const int d = lane + j * kLanes;
        if (page >= 0 && d < p.dim) element[j] = widen(place[d * p.k.step[3]]);
      }
    }
    for (int row = 0; row < rows; ++row) {
      float dot = 0.0f;
#pragma unroll
      for (int j = 0; j < Dim / kLanes; ++j) dot += wide[row * Dim + lane + j * kLanes] * element[j];
#pragma unroll
      for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, lanes);
      if (lane == row % kLanes) {
        const bool seen = key >= row_first[row] && key < row_end[row];
        weights[row][key] = seen ? adjusted(p.more, dot * scale, nullptr, 0, 0) : minus_infinity;
      }
    }
  }
  __syncthreads();

  for (int row = thread / 32; row < rows; row += kWarps) {
    float largest = minus_infinity, sum = 0.0f;
    for (int key = thread % 32; key < kSplit; key += 32) largest = fmaxf(largest, weights[row][key]);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    const float base = largest == minus_infinity ? 0.0f : largest;
    for (int key = thread % 32; key < kSplit; key += 32) {
      const float weight = exp2f(weights[row][key] - base);
      weights[row][key] = weight;
      sum += weight;
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (thread % 32 == 0) row_largest[row] = largest, row_sum[row] = sum;
  }
  __syncthreads();

  constexpr int kParts = kThreads / Dim;  // of the keys, taken in turn
  float total[kRows] = {};
  const int column = thread % Dim, part = thread / Dim;
  if (column < p.dim) {
    for (int key = lowest + part; key < highest; key += kParts) {
      const long long page = page_of(begin + key);
      const T *place = v + p.v.start + page * p.v.step[0] + head * p.v.step[1] + (begin + key) % p.page * p.v.step[2];
      const float value = page >= 0 ? widen(place[column * p.v.step[3]]) : 0.0f;
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (row < rows && key >= row_first[row] && key < row_end[row]) total[row] += weights[row][key] * value;
      }
    }
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row) wide[row * kThreads + thread] = total[row];
  __syncthreads();

  const int most = all_rows < kRows ? static_cast<int>(all_rows) : kRows, size = most * (Dim + 2);
  float *own = work + (owner * p.splits + split) * size;
  for (int i = thread; i < rows * Dim; i += kThreads) {
    float sum = 0.0f;
    for (int from = 0; from < kParts; ++from) sum += wide[i / Dim * kThreads + from * Dim + i % Dim];
    own[i] = sum;
  }
  if (thread < rows) own[most * Dim + thread] = row_largest[thread], own[most * (Dim + 1) + thread] = row_sum[thread];
  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(counters + owner, 1) == last_split - first_split;
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  const volatile float *parts = work + owner * p.splits * size;
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
