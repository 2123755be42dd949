// mamba.cu: what a Mamba-2 layer computes of rows beside its scan: the convolution over the last positions, what is
// kept of a chunk, and the norm of groups.
#include "mamba.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kRows = 16;  // of a prompt, that a block of convolve() takes

// A thread for each channel of the convolution and for each head's step length: rows and steps of a part of a prompt,
// kRows for a block in y. What the convolution sees before the part is in the cache, a position p at p % conv.
template <class T>
__global__ void __launch_bounds__(kThreads)
    convolve(const T *projected, const int *positions, const int *slots, const T *weight, const T *bias,
             const T *step_bias, const T *tails, T *rows, float *steps, const __grid_constant__ MambaCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= call.channels + call.heads) return;
  const Part part = part_of(positions, slots, 0, call);
  const T *from = projected + part.first * call.width + call.inner + i;
  const long long begin = static_cast<long long>(blockIdx.y) * kRows;
  const long long end = begin + kRows < part.count ? begin + kRows : part.count;
  if (i >= call.channels) {
    const long long head = i - call.channels;
    for (long long row = begin; row < end; ++row)
      steps[(part.first + row) * call.heads + head] = step_of(from[row * call.width], step_bias[head], call);
    return;
  }
  const int before = call.conv - 1;
  float seen[kMaxConv], factor[kMaxConv];
#pragma unroll
  for (int k = 0; k < kMaxConv; ++k) {
    const long long row = begin - before + k, position = part.start + row;
    seen[k] = 0.0f;
    if (k < before && row >= 0) seen[k] = widen(from[row * call.width]);
    if (k < before && row < 0 && position >= 0) seen[k] = widen(tails[part.tail(position, call) + i]);
    factor[k] = k <= before ? widen(weight[i * call.conv + k]) : 0.0f;
  }
  const float shift = call.has_bias ? widen(bias[i]) : 0.0f;
  for (long long row = begin; row < end; ++row) {
    const float own = widen(from[row * call.width]);
    float sum = shift;
#pragma unroll
    for (int k = 0; k < kMaxConv; ++k) {
      if (k < before) sum += factor[k] * seen[k];
      if (k == before) sum += factor[k] * own;
    }
#pragma unroll
    for (int k = 0; k < kMaxConv; ++k)
      if (k < before) seen[k] = k + 1 < before ? seen[k + 1 < kMaxConv ? k + 1 : k] : own;
    rows[(part.first + row) * call.channels + i] = convert<T>::from(silu(sum));
  }
}

// The rows and steps of the chunk that a part of a prompt ends in, and what the next row's convolution sees, into the
// cache. Blocks in y are the chunk's positions.
template <class T>
__global__ void __launch_bounds__(kThreads)
    keep_rows(const T *projected, const int *positions, const int *slots, const T *rows, const float *steps, T *tails,
              T *kept_rows, float *kept_steps, const __grid_constant__ MambaCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x, s = blockIdx.y;
  if (i >= call.channels + call.heads) return;
  const Part part = part_of(positions, slots, 0, call);
  if (s < call.conv && s < part.count && i < call.channels) {
    const long long row = part.count - 1 - s;
    tails[part.tail(part.start + row, call) + i] = projected[(part.first + row) * call.width + call.inner + i];
  }
  const long long end = part.start + part.count, position = end / kChunk * kChunk + s;
  if (position < part.start || position >= end) return;
  const long long row = part.first + position - part.start, place = part.slot * kChunk + s;
  if (i < call.channels) {
    kept_rows[place * call.channels + i] = rows[row * call.channels + i];
  } else {
    const long long head = i - call.channels;
    kept_steps[place * call.heads + head] = steps[row * call.heads + head];
  }
}

// out = x / sqrt(mean(x x) + epsilon) weight of each group of a row's elements. Blocks in x are groups, in y rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    norm_groups(const float *x, const T *weight, T *out, const __grid_constant__ MambaCall call) {
  __shared__ float sums[kWarps];
  const long long size = call.inner / call.groups, begin = blockIdx.x * size, start = blockIdx.y * call.inner + begin;
  let_next_begin();
  await_previous();
  float squares = 0.0f;
#pragma unroll 8
  for (long long i = threadIdx.x; i < size; i += kThreads) squares += x[start + i] * x[start + i];
  squares = over_warp(squares);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp];
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(size) + call.epsilon);
#pragma unroll 8
  for (long long i = threadIdx.x; i < size; i += kThreads)
    out[start + i] = convert<T>::from(x[start + i] * factor * widen(weight[begin + i]));
}

}  // namespace pk
