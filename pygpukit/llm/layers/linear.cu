// linear.cu: norms of rows, and products of a few rows with a weight (out, in): a warp for each column of the result.
//
// A sum over K has 32 partial sums, one a lane, of the 16-byte pieces lane, lane + 32, ... in their order, which are added
// in a fixed tree. The order depends on K alone: a row has the same bits however many rows are computed with it.
#include "numeric.cuh"

namespace pk {

constexpr int kWarps = 8;  // of a block
constexpr int kThreads = 32 * kWarps;
constexpr int kAhead = 4;  // pieces of a weight's row that are read before the first is used

enum After { kStore, kAdd, kGelu, kGeluErf, kSilu };

struct LinearCall {
  long long n, k;  // columns of the result, of kSilu half of the weight's rows; elements of a row
  int rows, has_bias, has_shift;
  float epsilon;
};

template <class T>
struct alignas(16) Piece {
  static constexpr int kCount = 16 / sizeof(T);
  T v[kCount];
};

template <class T>
__device__ __forceinline__ Piece<T> piece_at(const T *row, long long piece) {
  return reinterpret_cast<const Piece<T> *>(row)[piece];
}

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// The sum over the block's threads, known to all.
__device__ __forceinline__ float over_block(float value, float (&sums)[kWarps]) {
  value = over_warp(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value += sums[warp];
  return value;
}

// One row, normalised: RMS norm, or layer norm where kCentered.
template <class T, bool kCentered>
__device__ __forceinline__ void norm_row(const float *x, const T *scale, const T *shift, T *out, const LinearCall &call,
                                         float (&sums)[kWarps]) {
  const float count = static_cast<float>(call.k);
  float mean = 0.0f;
  if (kCentered) {
    float sum = 0.0f;
    for (long long i = threadIdx.x; i < call.k; i += kThreads) sum += x[i];
    mean = over_block(sum, sums) / count;
  }
  float squares = 0.0f;
  for (long long i = threadIdx.x; i < call.k; i += kThreads) {
    const float value = x[i] - mean;
    squares = fmaf(value, value, squares);
  }
  const float factor = 1.0f / sqrtf(over_block(squares, sums) / count + call.epsilon);
  for (long long i = threadIdx.x; i < call.k; i += kThreads) {
    float value = (x[i] - mean) * factor * widen(scale[i]);
    if (call.has_shift) value += widen(shift[i]);
    out[i] = convert<T>::from(value);
  }
}

template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_rows(const float *x, const T *scale, const T *shift, T *out, const __grid_constant__ LinearCall call) {
  __shared__ float sums[kWarps];
  const long long start = blockIdx.x * call.k;
  norm_row<T, kCentered>(x + start, scale, shift, out + start, call, sums);
}

__device__ __forceinline__ float gelu_of(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * (x * x * x))));
}

__device__ __forceinline__ float gelu_erf_of(float x) { return 0.5f * x * erfcf(-0.70710678118654752f * x); }

template <int kAfter, class Out>
__device__ __forceinline__ void finish(Out *out, float value, float up) {
  if (kAfter == kGelu) value = gelu_of(value);
  if (kAfter == kGeluErf) value = gelu_erf_of(value);
  if (kAfter == kSilu) value = value / (1.0f + expf(-value)) * up;
  if (kAfter == kAdd) value += widen(*out);
  *out = convert<Out>::from(value);
}

// The products of one row of the weight with kRows rows of x, each sum known to all lanes.
template <class T, int kRows>
__device__ __forceinline__ void dots(const T *w, const T *x, long long k, int rows, float (&sum)[kRows]) {
  constexpr int kCount = Piece<T>::kCount;
  const long long pieces = k / kCount;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r] = 0.0f;
  for (long long first = lane; first < pieces; first += 32 * kAhead) {
    Piece<T> ahead[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
      if (first + 32 * a < pieces) ahead[a] = piece_at<T>(w, first + 32 * a);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (first + 32 * a >= pieces) break;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r >= rows) break;
        const Piece<T> other = piece_at<T>(x + r * k, first + 32 * a);
#pragma unroll
        for (int i = 0; i < kCount; ++i) sum[r] = fmaf(widen(ahead[a].v[i]), widen(other.v[i]), sum[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r] = over_warp(sum[r]);
}

template <class T, class Out, int kRows, int kAfter>
__device__ __forceinline__ void columns(const T *x, const T *w, const T *bias, Out *out, const LinearCall &call,
                                        int rows) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (long long n = static_cast<long long>(blockIdx.x) * kWarps + warp; n < call.n;
       n += static_cast<long long>(gridDim.x) * kWarps) {
    float sum[kRows], up[kRows];
    dots<T, kRows>(w + n * call.k, x, call.k, rows, sum);
    if (kAfter == kSilu) dots<T, kRows>(w + (n + call.n) * call.k, x, call.k, rows, up);
    if (lane != 0) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
      float value = sum[r], second = kAfter == kSilu ? up[r] : 0.0f;
      if (call.has_bias) {
        value += widen(bias[n]);
        if (kAfter == kSilu) second += widen(bias[n + call.n]);
      }
      finish<kAfter>(out + r * call.n + n, value, second);
    }
  }
}

// kRows rows of x a block, of the weight's type; blocks in y are further rows.
template <class T, class Out, int kRows, int kAfter>
__global__ void __launch_bounds__(kThreads)
    linear(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  const long long first = static_cast<long long>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(call.rows - first < kRows ? call.rows - first : kRows);
  columns<T, Out, kRows, kAfter>(x + first * call.k, w, bias, out + first * call.n, call, rows);
}

// One row of float, normalised by each block for itself.
template <class T, class Out, int kAfter, bool kCentered>
__global__ void __launch_bounds__(kThreads) norm_linear(const float *x, const T *scale, const T *shift, const T *w,
                                                        const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  __shared__ float sums[kWarps];
  extern __shared__ uint4 row_memory[];
  T *row = reinterpret_cast<T *>(row_memory);
  norm_row<T, kCentered>(x, scale, shift, row, call, sums);
  __syncthreads();
  columns<T, Out, 1, kAfter>(row, w, bias, out, call, 1);
}

// What a product of many rows still lacks: out = after(product + bias), a thread for each element of out.
template <class T, class Out, int kAfter>
__global__ void __launch_bounds__(kThreads)
    after_product(const T *product, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long row = blockIdx.y;
  if (n >= call.n) return;
  const long long width = kAfter == kSilu ? 2 * call.n : call.n;
  float value = widen(product[row * width + n]);
  float up = kAfter == kSilu ? widen(product[row * width + call.n + n]) : 0.0f;
  if (call.has_bias) {
    value += widen(bias[n]);
    if (kAfter == kSilu) up += widen(bias[call.n + n]);
  }
  finish<kAfter>(out + row * call.n + n, value, up);
}

}  // namespace pk
