// scan_step.cu: the convolution and the scan of a Mamba-2 layer for one row of each of several sequences.
#include "mamba.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kTogether = 8;  // rows that a warp reads at a time, or elements of one

// `count` elements on their way to the cache of the device.
template <class T>
__device__ __forceinline__ void prefetch(const T *from, long long count, int thread, int threads) {
  constexpr int kLine = 128 / static_cast<int>(sizeof(T));
  for (long long i = static_cast<long long>(thread) * kLine; i < count; i += static_cast<long long>(threads) * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
}

// to[j] = the product of c with row j of `rows`, rows this warp's and every kWarps further, of n elements each, `pitch`
// apart.
template <class T>
__device__ __forceinline__ void multiply_rows(const float *c, const T *rows, long long pitch, int n, int count,
                                              float *to) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int first = warp; first < count; first += kTogether * kWarps) {
    float sum[kTogether] = {};
#pragma unroll 4
    for (int i = lane; i < n; i += 32) {
      const float own = c[i];
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (first + j * kWarps < count) sum[j] += own * widen(rows[(first + j * kWarps) * pitch + i]);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      sum[j] = over_warp(sum[j]);
      if (lane == 0 && first + j * kWarps < count) to[first + j * kWarps] = sum[j];
    }
  }
}

// to[0] = the product of c with b, by a warp.
__device__ __forceinline__ void multiply_row(const float *c, const float *b, int n, float *to) {
  float sum = 0.0f;
  for (int i = threadIdx.x % 32; i < n; i += 32) sum += c[i] * b[i];
  sum = over_warp(sum);
  if (threadIdx.x % 32 == 0) *to = sum;
}

// A block for each head in x and sequence in y: the row's x, B, C and step length, which go into the cache, then out =
// (what the state where the chunk began gives, what the chunk's rows up to this one give, and D x), times silu(z),
// float32. The last row of a chunk brings the state forward. Of B and C the first of the heads that share them keeps
// what the cache gets; no block reads what another writes.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    scan_step(const T *projected, const int *positions, const int *slots, const T *weight, const T *bias,
              const T *step_bias, T *tails, T *kept_rows, float *kept_steps, float *states, const float *rate_logs,
              const T *skips, float *out, const __grid_constant__ MambaCall call) {
  __shared__ float score[kChunk], length[kChunk], from_state[kMaxDim], own[kMaxDim + 2 * kMaxState], sums[kThreads];
  __shared__ Total total[kChunk];
  let_next_begin();
  const Part part = part_of(positions, slots, blockIdx.y, call);
  if (part.start < 0) {
    await_previous();
    return;
  }
  const long long head = blockIdx.x, shared = call.heads / call.groups, group = head / shared;
  const int dim = static_cast<int>(call.dim), n = static_cast<int>(call.state);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, q = static_cast<int>(part.start % kChunk);
  const bool has_state = part.start >= kChunk;
  const T *from = projected + part.first * call.width + call.inner;
  T *rows = kept_rows + part.slot * kChunk * call.channels;
  const T *before_x = rows + head * dim, *before_b = rows + call.inner + group * n;
  float *state = states + (part.slot * call.heads + head) * dim * n;
  if (has_state) prefetch(state, static_cast<long long>(dim) * n, threadIdx.x, kThreads);
  for (int s = warp; s < q; s += kWarps) {
    prefetch(before_x + s * call.channels, dim, lane, 16);
    prefetch(before_b + s * call.channels, n, lane, 16);
  }
  await_previous();  // nothing above is written by a launch of the same step
  for (int i = threadIdx.x; i < dim + 2 * n; i += kThreads) {
    const long long channel =
        i < dim ? head * dim + i : call.inner + (i < dim + n ? group : call.groups - 1 + group) * n + i - dim;
    float sum = call.has_bias ? widen(bias[channel]) : 0.0f;
#pragma unroll
    for (int k = 0; k < kMaxConv; ++k) {
      const long long position = part.start + 1 - call.conv + k;
      if (k >= call.conv || position < 0) continue;
      const T seen = k + 1 < call.conv ? tails[part.tail(position, call) + channel] : from[channel];
      sum += widen(weight[channel * call.conv + k]) * widen(seen);
    }
    const T value = convert<T>::from(silu(sum));
    own[i] = widen(value);
    if (i < dim || head % shared == 0) {
      rows[q * call.channels + channel] = value;
      tails[part.tail(part.start, call) + channel] = from[channel];
    }
  }
  float *steps = kept_steps + part.slot * kChunk * call.heads + head;
  if (threadIdx.x < kChunk && threadIdx.x != q)
    length[threadIdx.x] = threadIdx.x < q ? steps[threadIdx.x * call.heads] : 0.0f;
  if (threadIdx.x == q) steps[q * call.heads] = length[q] = step_of(from[call.channels + head], step_bias[head], call);
  __syncthreads();
  sum_steps(length, rate_logs[head], total);
  const float *x = own, *b = own + dim, *c = b + n;
  multiply_rows(c, before_b, call.channels, n, q, score);
  if (warp == kWarps - 1) multiply_row(c, b, n, score + q);
  if (has_state) multiply_rows(c, state, n, n, dim, from_state);
  __syncthreads();
  for (int s = threadIdx.x; s <= q; s += kThreads) score[s] *= fall(total[q], total[s]) * length[s];
  __syncthreads();
  const int slices = kThreads / dim, slice = threadIdx.x / dim, at = threadIdx.x % dim;  // of the rows before this one
  if (slice < slices) {
    float sum = 0.0f;
#pragma unroll 16
    for (int s = slice; s < q; s += slices) sum += score[s] * widen(before_x[s * call.channels + at]);
    sums[threadIdx.x] = sum;
  }
  __syncthreads();
  for (int p = threadIdx.x; p < dim; p += kThreads) {
    float sum = 0.0f;
    for (int i = 0; i < slices; ++i) sum += sums[i * dim + p];
    const float kept = has_state ? fall(total[q]) * from_state[p] : 0.0f;
    const float y = kept + sum + (score[q] + widen(skips[head])) * x[p];
    const float z = widen(projected[part.first * call.width + head * dim + p]);
    out[part.first * call.inner + head * dim + p] = y * silu(z);
  }
  if (q + 1 < kChunk) return;
  __syncthreads();
  for (int s = threadIdx.x; s < kChunk; s += kThreads) score[s] = fall(total[q], total[s]) * length[s];
  __syncthreads();
  const float kept = fall(total[q]);
  for (int i = threadIdx.x; i < (dim + kTogether - 1) / kTogether * n; i += kThreads) {
    const int first = i / n * kTogether, column = i % n;
    float sum[kTogether] = {};
#pragma unroll 4
    for (int s = 0; s < q; ++s) {
      const float factor = score[s] * widen(before_b[s * call.channels + column]);
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (first + j < dim) sum[j] += factor * widen(before_x[s * call.channels + first + j]);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      if (first + j >= dim) break;
      float *const to = state + (first + j) * n + column;
      *to = (has_state ? kept * *to : 0.0f) + (sum[j] + score[q] * b[column] * x[first + j]);
    }
  }
}

}  // namespace pk
