// attention.cu: causal scaled dot-product attention with the softmax computed along the way (Dao et al. 2022). A block
// takes kRows queries of a head and walks the keys in tiles from the first on; 8 lanes share a query. A query's result
// depends on its own keys alone, not on what else is in the block or the batch.
#include "attention.cuh"

namespace pk {

struct Attention {
  long long heads, group;  // query heads, and how many of them share a head of keys
  long long queries, keys, dim;
  long long offset;        // query i stands at key i + offset
  long long has_length;    // the number of keys is read on the device, at most `keys`
  long long length_step;   // of a batch element's length, in elements
  long long at_end;        // offset = number of keys - queries
  AttentionPlace q, k, v, out;
  AttentionExtras more;
};

constexpr int kLanes = 8;

template <int Rows, int Dim, int Threads, class T>
__device__ __forceinline__ void fetch_rows(float (&tile)[Rows][Dim + 1], const T *data, const AttentionPlace &place,
                                           long long first, long long end, long long dim) {
  for (int i = threadIdx.x; i < Rows * Dim; i += Threads) {
    const int row = i / Dim, column = i % Dim;
    const bool inside = first + row < end && column < dim;
    tile[row][column] = inside ? widen(data[(first + row) * place.step[2] + column * place.step[3]]) : 0.0f;
  }
}

// Dim: head dimension, rounded up; kRows queries and kKeys keys at a time. kMore: a window, a mask, a cap of scores or
// sinks, each where `p.more` has it.
template <class T, int Dim, int kRows, int kKeys, bool kMore>
__global__ void __launch_bounds__(kRows *kLanes)
    attention(const T *q, const T *k, const T *v, T *out, const int *length, const float *mask, const float *sinks,
              const __grid_constant__ Attention p) {
  constexpr int kThreads = kRows * kLanes;
  __shared__ float queries[kRows][Dim + 1];
  __shared__ float tile[kKeys][Dim + 1];
  __shared__ float weights[kRows][kKeys + 1];
  const long long tiles = (p.queries + kRows - 1) / kRows;
  const long long head = blockIdx.x / tiles % p.heads, batch = blockIdx.x / tiles / p.heads;
  const long long first_query = blockIdx.x % tiles * kRows;
  const int row = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;

  long long keys = p.keys, offset = p.offset;
  if (p.has_length) {
    const int stated = length[batch * p.length_step];
    keys = stated < 0 ? 0 : stated < p.keys ? stated : p.keys;
    if (p.at_end) offset = keys - p.queries;
  }
  const auto visible_to = [&](long long query) {
    const long long count = query + offset + 1 + p.more.ahead;
    return count < 0 ? 0 : count < keys ? count : keys;
  };
  const auto unseen_by = [&](long long query) {  // keys before the window
    const long long count = query + offset - p.more.behind;
    return count < 0 ? 0 : count;
  };
  const long long query = first_query + row;
  const long long visible = query < p.queries ? visible_to(query) : 0;
  const long long last_query = first_query + kRows < p.queries ? first_query + kRows - 1 : p.queries - 1;
  const long long needed = visible_to(last_query);

  q += p.q.start + batch * p.q.step[0] + head * p.q.step[1];
  k += p.k.start + batch * p.k.step[0] + head / p.group * p.k.step[1];
  v += p.v.start + batch * p.v.step[0] + head / p.group * p.v.step[1];
  fetch_rows<kRows, Dim, kThreads>(queries, q, p.q, first_query, p.queries, p.dim);

  const float minus_infinity = -__uint_as_float(0x7f800000u);
  const float scale = static_cast<float>(p.more.scale);
  float largest = minus_infinity, sum = 0.0f;
  if constexpr (kMore) {
    if (p.more.has_sinks) largest = sinks[head] * kLog2E, sum = 1.0f;
    if (p.more.has_mask) mask += p.more.mask.start + batch * p.more.mask.step[0] + head * p.more.mask.step[1];
  }
  const long long unseen = kMore ? unseen_by(query) : 0;
  float total[Dim / kLanes] = {};
  for (long long first_key = kMore ? unseen_by(first_query) / kKeys * kKeys : 0; first_key < needed;
       first_key += kKeys) {
    __syncthreads();
    fetch_rows<kKeys, Dim, kThreads>(tile, k, p.k, first_key, needed, p.dim);
    __syncthreads();
    const int seen = visible - first_key < kKeys ? static_cast<int>(visible - first_key) : kKeys;  // may be below 0
    const int skipped = !kMore || unseen < first_key         ? 0
                        : unseen - first_key < kKeys ? static_cast<int>(unseen - first_key)
                                                     : kKeys;
    float score[kKeys / kLanes];
    float tile_largest = minus_infinity;
#pragma unroll
    for (int j = 0; j < kKeys / kLanes; ++j) {
      const int key = lane + j * kLanes;
      float dot = 0.0f;
#pragma unroll 16
      for (int d = 0; d < Dim; ++d) dot += queries[row][d] * tile[key][d];
      score[j] = dot * scale;
      const bool visible_key = key < seen && (!kMore || key >= skipped);
      if constexpr (kMore) {
        if (visible_key) score[j] = adjusted(p.more, score[j], mask, query, first_key + key);
      }
      if (visible_key) tile_largest = fmaxf(tile_largest, score[j]);
    }
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
      tile_largest = fmaxf(tile_largest, __shfl_xor_sync(0xffffffffu, tile_largest, lanes));
    }
    const float next = fmaxf(largest, tile_largest);
    const float base = next == minus_infinity ? 0.0f : next;
    const float shrink = exp2f(largest - base);
    largest = next;
    float tile_sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kKeys / kLanes; ++j) {
      const int key = lane + j * kLanes;
      const float weight = key < seen && (!kMore || key >= skipped) ? exp2f(score[j] - base) : 0.0f;
      weights[row][key] = weight;
      tile_sum += weight;
    }
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) tile_sum += __shfl_xor_sync(0xffffffffu, tile_sum, lanes);
    sum = sum * shrink + tile_sum;
    __syncthreads();
    fetch_rows<kKeys, Dim, kThreads>(tile, v, p.v, first_key, needed, p.dim);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < Dim / kLanes; ++j) total[j] *= shrink;
    for (int key = kMore ? skipped : 0; key < seen; ++key) {
      const float weight = weights[row][key];
#pragma unroll
      for (int j = 0; j < Dim / kLanes; ++j) total[j] += weight * tile[key][lane + j * kLanes];
    }
  }
  if (query >= p.queries) return;
  out += p.out.start + batch * p.out.step[0] + head * p.out.step[1] + query * p.out.step[2];
#pragma unroll
  for (int j = 0; j < Dim / kLanes; ++j) {
    const int d = lane + j * kLanes;
    const bool nothing = visible == 0 || (kMore && sum == 0.0f);
    if (d < p.dim) out[d * p.out.step[3]] = convert<T>::from(nothing ? 0.0f : total[j] / sum);
  }
}

}  // namespace pk
