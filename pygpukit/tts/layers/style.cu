// style.cu: each channel of each sentence normalised over its own time, scaled and shifted by a style, and an
// activation of that; zeros where no sentence is, so that a convolution that follows sees nothing of a neighbour.
#include "numeric.cuh"

namespace pk {

struct Style {
  long long channels, length;  // length: of a row of x
  long long items, spans;      // rows of x in a channel; sentences in each of them, 0: one, which is all of it
  long long has_scale, has_shift, plus_one;  // plus_one: scales are what is added to 1
  long long scale_start, shift_start;        // where the weights of the first sentence are
  long long weight_step;                     // between the weights of sentences, 0 where they have the same
  long long act;                             // 0: none, 1: leaky ReLU, 2: snake
  float slope, epsilon;
};

// The sum over a block of 512 threads, in a fixed tree; everybody gets it.
__device__ __forceinline__ float block_sum(float value, float *shared) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[threadIdx.x % 16];
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// x, out: (items, channels, length), dense. scale, shift: of each channel, weight_step apart from sentence to sentence.
// alpha: of each channel, for snake. spans: first place and length of each sentence. A block: a channel of a sentence.
__global__ void __launch_bounds__(512) adapt(const float *x, const float *scale, const float *shift, const float *alpha,
                                             const long long *spans, float *out, const __grid_constant__ Style p) {
  __shared__ float shared[16];
  const long long channel = blockIdx.x, sentence = blockIdx.y, thread = threadIdx.x, threads = blockDim.x;
  const long long row = ((p.spans ? 0 : sentence) * p.channels + channel) * p.length;
  const long long start = p.spans ? spans[2 * sentence] : 0, size = p.spans ? spans[2 * sentence + 1] : p.length;
  const float *own = x + row + start;
  float *to = out + row + start;

  float sum = 0;
  for (long long i = thread; i < size; i += threads) sum += own[i];
  const float mean = block_sum(sum, shared) / static_cast<float>(size);
  float square = 0;
  for (long long i = thread; i < size; i += threads) {
    const float apart = own[i] - mean;
    square = ::fmaf(apart, apart, square);
  }
  const float inverse = 1.0f / ::sqrtf(block_sum(square, shared) / static_cast<float>(size) + p.epsilon);
  const long long weight = sentence * p.weight_step + channel;
  const float factor =
      p.has_scale ? (p.plus_one ? 1.0f + scale[p.scale_start + weight] : scale[p.scale_start + weight]) : 1.0f;
  const float term = p.has_shift ? shift[p.shift_start + weight] : 0.0f;
  const float a = p.act == 2 ? alpha[channel] : 1.0f;
  for (long long i = thread; i < size; i += threads) {
    float value = ::fmaf((own[i] - mean) * inverse, factor, term);
    if (p.act == 1) value = value > value * p.slope ? value : value * p.slope;
    if (p.act == 2) {
      const float s = ::sinf(a * value);
      value += s * s / a;
    }
    to[i] = value;
  }
  if (!p.spans) return;
  // The gap behind the sentence, and before the first one.
  const long long end = sentence + 1 < p.spans ? spans[2 * sentence + 2] : p.length;
  for (long long i = size + thread; i < end - start; i += threads) to[i] = 0;
  for (long long i = thread; sentence == 0 && i < start; i += threads) out[row + i] = 0;
}

}  // namespace pk
