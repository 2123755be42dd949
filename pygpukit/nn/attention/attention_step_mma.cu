// attention_step_mma.cu: attention_step.cu for 16 bits and query heads of which several share keys, on tensor cores.
//
// A block takes all of up to eight heads that share a key head, and one part of their keys, which come to shared memory
// once: scores are products of 16 keys with eight heads, results those of 16 elements of values with eight heads'
// weights. A weight is two numbers of 16 bits, whose sum is it but for 2^-17. Columns of such a product do not depend
// on each other, so a row's bits are its own.
#include "ahead.cuh"
#include "key_parts.cuh"
#include "mma.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kStepThreads = 256, kStepWarps = kStepThreads / 32;
constexpr int kColumns = 8;    // query heads of a block
constexpr int kLongest = 128;  // elements of a head
constexpr int kPadding = 8;    // elements behind a row, against bank conflicts
constexpr int kEarly = 4;      // parts that are read before it is known what they count for
static_assert(kStepWarps == kColumns, "a warp for each head's weights");
static_assert(kStepWarps * 16 == kLongest, "a warp for 16 elements of a result");

template <class T>
struct Rows {  // that a block has beside its keys and values
  T query[kColumns][kLongest + kPadding];
  T weight[2][kColumns][kPart + kPadding];
  T key[kLongest], value[kLongest];  // the row's own
  float score[kColumns][kPart];
  float largest[kColumns], sum[kColumns], factor[kColumns][kParts];
};

// A step: blocks in y are key heads, or parts of eight of the heads that share one, blocks in z parts of the keys, as
// in attention_step.cu. counters: zeros, one for a row's head. What earlier steps wrote is on its way before the launch
// before this one has ended, where it is not that which writes the row's own key (call.places).
template <class T, int kStages>
__global__ void __launch_bounds__(kStepThreads)
    attend_step_mma(const T *qkv, const int *positions, const int *table, T *keys, T *values, const float *cosines,
                    const float *sines, const T *q_scale, const T *k_scale, const float *sinks, float *parts,
                    int *counters, T *out, const __grid_constant__ AttentionCall call) {
  extern __shared__ uint4 attention_memory[];
  __shared__ __align__(16) Rows<T> rows;
  if (!call.places) await_previous();
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads;
  const long long batches = (group + kColumns - 1) / kColumns, kv_head = blockIdx.y / batches;
  const long long begin = blockIdx.y % batches * kColumns, first_head = kv_head * group + begin;
  const int heads = static_cast<int>(group - begin < kColumns ? group - begin : kColumns);
  const long long position = positions[row];
  const bool is_there = position >= 0 && position < call.capacity;
  const Seen seen = seen_from(is_there ? position : 0, call);
  const int chunks = static_cast<int>(seen.last - seen.first) + 1, each = (chunks + kParts - 1) / kParts;
  const int count = (chunks + each - 1) / each, number = blockIdx.z;
  if (!is_there || number >= count) {
    await_previous();
    return;
  }
  const long long first = seen.first + static_cast<long long>(number) * each;
  const long long last = first + each - 1 < seen.last ? first + each - 1 : seen.last;
  const bool sees_own = call.places && number == count - 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, of_eight = lane / 4, four = lane % 4;
  const int pitch = static_cast<int>(dim) + kPadding, tiles = static_cast<int>(dim) / 16;
  T *const memory = reinterpret_cast<T *>(attention_memory);
  const auto ask = [&](long long chunk, int stage) {
    if (chunk <= last) {
      const long long start = start_of(table, row, kv_head, chunk * kPart, call);
      T *const to = memory + stage * 2 * kPart * pitch;
      for (int i = threadIdx.x; i < kPart * 2 * tiles; i += kStepThreads) {
        const int key = i / (2 * tiles), piece = i % (2 * tiles) * 8;
        const long long at = chunk * kPart + key;
        const int some = at >= seen.low && at + call.places <= position ? 8 : 0;
        copy_ahead<8>(to + key * pitch + piece, keys + start + at * dim + piece, some);
        copy_ahead<8>(to + (kPart + key) * pitch + piece, values + start + at * dim + piece, some);
      }
    }
    end_stage();
  };
#pragma unroll
  for (int i = 0; i < kStages; ++i) ask(first + i, i);
  for (int item = heads + warp; item < kColumns; item += kStepWarps)
    for (long long i = lane; i < dim; i += 32) rows.query[item][i] = convert<T>::from(0.0f);
  if (call.places) await_previous();
  const T *of_row = qkv + row * call.width;
  for (int item = warp; item < heads + 2; item += kStepWarps) {  // few heads: a warp each, and for the own key and value
    const auto to_query = [&](long long i, T element) { rows.query[item][i] = element; };
    if (item < heads) {
      const T *from = of_row + (first_head + item) * dim;
      if (call.places)
        turn_head(from, q_scale, cosines, sines, position, call, to_query);
      else
        for (long long i = lane; i < dim; i += 32) to_query(i, from[i]);
    } else if (sees_own) {
      const long long place = start_of(table, row, kv_head, position, call) + position * dim;
      if (item == heads) {
        turn_head(of_row + (call.heads + kv_head) * dim, k_scale, cosines, sines, position, call,
                  [&](long long i, T element) {
                    rows.key[i] = element;
                    if (begin == 0) keys[place + i] = element;
                  });
      } else {
        const T *value = of_row + (call.heads + call.kv_heads + kv_head) * dim;
        for (long long i = lane; i < dim; i += 32) {
          rows.value[i] = value[i];
          if (begin == 0) values[place + i] = value[i];
        }
      }
    }
  }
  float total[4] = {}, top[2], all[2] = {};  // of heads 2 four and 2 four + 1
  top[0] = top[1] = -__uint_as_float(0x7f800000u);
  int stage = 0;
  for (long long chunk = first; chunk <= last; ++chunk) {
    wait_for_stage<kStages - 1>();
    __syncthreads();
    T *const key_rows = memory + stage * 2 * kPart * pitch, *const value_rows = key_rows + kPart * pitch;
    if (sees_own && chunk == seen.last) {
      const int own = static_cast<int>(position % kPart) * pitch;
      if (threadIdx.x < dim) key_rows[own + threadIdx.x] = rows.key[threadIdx.x];
      if (threadIdx.x < dim) value_rows[own + threadIdx.x] = rows.value[threadIdx.x];
      __syncthreads();
    }
    if (warp < kPart / 16) {
      float sums[2][4] = {};
#pragma unroll
      for (int k = 0; k < kLongest / 16; ++k) {
        if (k >= tiles) break;
        Pair a[4];
        load_matrices<false>(a, key_rows + (16 * warp + lane % 16) * pitch + 16 * k + lane / 16 * 8);
        const T *query = rows.query[of_eight] + 16 * k + 2 * four;
        const Pair b[2] = {*reinterpret_cast<const Pair *>(query), *reinterpret_cast<const Pair *>(query + 8)};
        mma(T{}, sums[k % 2], a, b);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = 16 * warp + of_eight + i / 2 * 8;
        const long long at = chunk * kPart + key;
        const float score =
            at >= seen.low && at <= position ? scaled(sums[0][i] + sums[1][i], call) : -__uint_as_float(0x7f800000u);
        rows.score[2 * four + i % 2][key] = score;
      }
    }
    __syncthreads();
    const float scores[2] = {rows.score[warp][lane], rows.score[warp][lane + 32]};
    float largest = fmaxf(scores[0], scores[1]), sum = 0.0f;
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float weight = expf(scores[i] - largest);
      const T high = convert<T>::from(weight);
      rows.weight[0][warp][lane + 32 * i] = high;
      rows.weight[1][warp][lane + 32 * i] = convert<T>::from(weight - widen(high));
      sum += weight;
    }
    sum = over_warp(sum);
    if (lane == 0) rows.largest[warp] = largest, rows.sum[warp] = sum;
    __syncthreads();
    if (warp < tiles) {
      float sums[4] = {};
#pragma unroll
      for (int k = 0; k < kPart / 16; ++k) {
        Pair a[4];
        load_matrices<true>(a, value_rows + (16 * k + lane / 16 * 8 + lane % 8) * pitch + 16 * warp + lane / 8 % 2 * 8);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const T *weight = rows.weight[part][of_eight] + 16 * k + 2 * four;
          const Pair b[2] = {*reinterpret_cast<const Pair *>(weight), *reinterpret_cast<const Pair *>(weight + 8)};
          mma(T{}, sums, a, b);
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float high = fmaxf(top[e], rows.largest[2 * four + e]);
        const float before = expf(top[e] - high), now = expf(rows.largest[2 * four + e] - high);
        top[e] = high;
        all[e] = all[e] * before + rows.sum[2 * four + e] * now;
#pragma unroll
        for (int i = e; i < 4; i += 2) total[i] = total[i] * before + sums[i] * now;
      }
    }
    __syncthreads();
    ask(chunk + kStages, stage);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  let_next_begin();
  const long long place = row * call.heads + first_head;
  float *const of_values = parts + row * call.heads * call.parts * (dim + 2);
  float *const of_sums = of_values + call.heads * call.parts * dim;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int head = 2 * four + e;
    if (warp >= tiles || head >= heads) continue;
    const long long part = (first_head + head) * call.parts + number;
    float before = 1.0f, whole = all[e];
    if (count == 1 && call.sinks) {
      const float sink = sinks[first_head + head], high = fmaxf(top[e], sink);
      before = expf(top[e] - high), whole = all[e] * before + expf(sink - high);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int element = 16 * warp + of_eight + 8 * i;
      if (count == 1)
        out[(place + head) * dim + element] = convert<T>::from(total[2 * i + e] * before / whole);
      else
        of_values[part * dim + element] = total[2 * i + e];
    }
    if (count > 1 && warp == 0 && of_eight == 0) of_sums[2 * part] = top[e], of_sums[2 * part + 1] = all[e];
  }
  if (count == 1 || !is_last(counters + place, count)) return;
  const int pairs = heads * static_cast<int>(dim) / 2, half = static_cast<int>(dim) / 2;
  const auto pair_of = [&](int i, int part) {
    const float *from = of_values + ((first_head + i / half) * call.parts + part) * dim + 2 * (i % half);
    return *reinterpret_cast<const float2 *>(from);
  };
  float2 early[kEarly];  // on their way while the factors are found
#pragma unroll
  for (int part = 0; part < kEarly; ++part)
    if (part < count && threadIdx.x < pairs) early[part] = pair_of(threadIdx.x, part);
  if (warp < heads) {
    const float *from = of_sums + 2 * ((first_head + warp) * call.parts + lane);
    const float own = lane < count ? from[0] : -__uint_as_float(0x7f800000u), sum = lane < count ? from[1] : 0.0f;
    const float sink = call.sinks ? sinks[first_head + warp] : -__uint_as_float(0x7f800000u);
    float high = fmaxf(own, sink);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, lanes));
    const float factor = expf(own - high), whole = over_warp(sum * factor) + expf(sink - high);
    rows.factor[warp][lane] = factor;
    if (lane == 0) rows.sum[warp] = whole;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += kStepThreads) {
    const int head = i / half, element = 2 * (i % half);
    float2 sum = {0.0f, 0.0f};
    const auto add = [&](int part, float2 own) {
      sum.x = fmaf(rows.factor[head][part], own.x, sum.x), sum.y = fmaf(rows.factor[head][part], own.y, sum.y);
    };
#pragma unroll
    for (int part = 0; part < kEarly; ++part)
      if (part < count) add(part, i < kStepThreads ? early[part] : pair_of(i, part));
#pragma unroll 8
    for (int part = kEarly; part < count; ++part) add(part, pair_of(i, part));
    T *const to = out + (place + head) * dim + element;
    to[0] = convert<T>::from(sum.x / rows.sum[head]), to[1] = convert<T>::from(sum.y / rows.sum[head]);
  }
}

}  // namespace pk
