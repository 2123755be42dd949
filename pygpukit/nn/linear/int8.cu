// int8.cu: rows rounded to int8, each with its scale, and what exact products of such rows with int8 weights lack.
#include "linear.cuh"
#include "overlap.cuh"

namespace pk {

struct RoundCall {
  long long k;
  float scale, unused;  // a scale of all rows; 0 where each has its own
};

// The larger one, NaN where one is.
__device__ __forceinline__ float larger(float a, float b) { return a >= b || a != a ? a : b; }

// codes = x / scale, rounded to nearest even, -128 to 127; a row's own scale takes its largest magnitude to 127.5. A row
// that has no numbers has NaN for a scale. A block a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    round_rows(const T *x, signed char *codes, float *scales, const __grid_constant__ RoundCall call) {
  __shared__ float parts[kWarps];
  let_next_begin();
  await_previous();
  x += blockIdx.x * call.k, codes += blockIdx.x * call.k;
  float largest = 0.0f;
  for_own(x, call.k, [&](long long, T element) { largest = larger(largest, fabsf(widen(element))); });
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2)
    largest = larger(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) largest = larger(largest, parts[warp]);
  float scale = call.scale > 0.0f ? call.scale : largest / 127.5f;
  if (scale == 0.0f) scale = 1.1920929e-7f;
  if (!(largest <= 3.4028235e38f) && !(call.scale > 0.0f && largest == largest)) scale = __uint_as_float(0x7fc00000u);
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  for_own(x, call.k, [&](long long i, T element) {
    codes[i] = static_cast<signed char>(rintf(fminf(fmaxf(widen(element) / scale, -128.0f), 127.0f)));
  });
}

// out = after(sums * the row's scale * the column's + bias): a thread for an element.
template <class T, class Out, int kEpilogue>
__global__ void __launch_bounds__(kThreads)
    after_int8(const int *sums, const float *rows, const float *columns, const T *bias, Out *out,
               const __grid_constant__ LinearCall call) {
  await_previous();
  const long long n = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x, row = blockIdx.y;
  if (n >= call.n) return;
  const int *from = sums + row * (kEpilogue == kSilu ? 2 : 1) * call.n + n;
  Out *const to = out + row * call.n + n;
  float value = static_cast<float>(from[0]) * rows[row] * columns[n], other = kEpilogue == kAdd ? widen(*to) : 0.0f;
  if (kEpilogue == kSilu) other = static_cast<float>(from[call.n]) * rows[row] * columns[call.n + n];
  if (call.has_bias) {
    value += widen(bias[n]);
    if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
  }
  finish<kEpilogue>(to, value, other);
}

}  // namespace pk
