// style_last.cu: style.cu's work where channels are dense: x is (time, channels). A sentence's time is cut into pieces
// of kPiece places from its own beginning, so that its sums do not depend on what lies beside it.
#include "numeric.cuh"
#include "pack.cuh"

namespace pk {

struct StyleLast {
  long long channels, length;                // length: places of x
  long long spans;                           // sentences, 0: one, which is all of x
  long long pieces;                          // of the longest sentence
  long long has_other;                       // x is to have another array added
  long long has_scale, has_shift, plus_one;  // plus_one: scales are what is added to 1
  long long scale_start, shift_start;        // where the weights of the first sentence are
  long long weight_step;                     // between the weights of sentences, 0 where they have the same
  long long act;                             // 0: none, 1: leaky ReLU, 2: snake
  float slope, epsilon;
};

constexpr int kPiece = 256, kGroups = 8, kLanes = 32;  // a warp has every kGroups-th place of a piece

struct Moments {
  float count, mean, square;  // square: the sum of squared distances from the mean
};

__device__ __forceinline__ Moments joined(Moments a, Moments b) {
  if (b.count == 0) return a;
  const float count = a.count + b.count, apart = b.mean - a.mean, part = b.count / count;
  return {count, ::fmaf(apart, part, a.mean), a.square + ::fmaf(apart * a.count * part, apart, b.square)};
}

__device__ __forceinline__ long long first_place(const long long *spans, const StyleLast &p, long long sentence) {
  return p.spans ? spans[2 * sentence] : 0;
}
__device__ __forceinline__ long long places(const long long *spans, const StyleLast &p, long long sentence) {
  return p.spans ? spans[2 * sentence + 1] : p.length;
}

// Mean and squared distances of each channel in a piece: parts (sentences, pieces, 2, channels). total: x and other, if
// there is another. Grid: pieces, sentences, channels of kLanes N. N: neighbours of a thread; N divides channels.
template <class T, int N>
__global__ void __launch_bounds__(256) style_moments(const T *x, const float *other, const long long *spans,
                                                     float *total, float *parts, const __grid_constant__ StyleLast p) {
  __shared__ Moments shared[kGroups][kLanes * N];
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const long long piece = blockIdx.x, sentence = blockIdx.y, channel = (blockIdx.z * kLanes + lane) * N;
  const long long left = places(spans, p, sentence) - piece * kPiece;
  if (left <= 0) return;
  const int count = left < kPiece ? static_cast<int>(left) : kPiece;
  const long long start = first_place(spans, p, sentence) + piece * kPiece;
  const bool there = channel < p.channels;
  Moments own[N] = {};
  if (there && group < count) {
    float pivot[N], sum[N] = {}, square[N] = {};
#pragma unroll 4
    for (int i = group; i < count; i += kGroups) {
      const long long at = (start + i) * p.channels + channel;
      const Pack<T, N> seen = load<N>(x + at);
      float value[N];
#pragma unroll
      for (int n = 0; n < N; ++n) value[n] = widen(seen.v[n]);
      if (p.has_other) {
        const Pack<float, N> more = load<N>(other + at);
        Pack<float, N> both;
#pragma unroll
        for (int n = 0; n < N; ++n) both.v[n] = value[n] = value[n] + more.v[n];
        store(total + at, both);
      }
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (i == group) pivot[n] = value[n];
        const float apart = value[n] - pivot[n];
        sum[n] += apart;
        square[n] = ::fmaf(apart, apart, square[n]);
      }
    }
    const float many = static_cast<float>((count - group + kGroups - 1) / kGroups);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float mean = sum[n] / many;
      own[n] = {many, pivot[n] + mean, ::fmaf(-sum[n], mean, square[n])};
    }
  }
#pragma unroll
  for (int n = 0; n < N; ++n) shared[group][lane * N + n] = own[n];
  __syncthreads();
  if (threadIdx.x >= kLanes * N) return;
  const long long of = blockIdx.z * kLanes * N + threadIdx.x;
  if (of >= p.channels) return;
  Moments all = shared[0][threadIdx.x];
  for (int i = 1; i < kGroups; ++i) all = joined(all, shared[i][threadIdx.x]);
  float *part = parts + (sentence * p.pieces + piece) * 2 * p.channels + of;
  part[0] = all.mean;
  part[p.channels] = all.square < 0 ? 0.0f : all.square;
}

// From the pieces what each channel of a sentence is multiplied by and what is added: table (sentences, 3, channels) of
// mean, factor, term. Grid: channels, sentences.
__global__ void __launch_bounds__(128)
    style_table(const float *parts, const float *scale, const float *shift, const long long *spans, float *table,
                const __grid_constant__ StyleLast p) {
  const long long channel = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, sentence = blockIdx.y;
  if (channel >= p.channels) return;
  const long long size = places(spans, p, sentence), pieces = (size + kPiece - 1) / kPiece;
  Moments all = {};
  const float *part = parts + sentence * p.pieces * 2 * p.channels + channel;
#pragma unroll 4
  for (long long i = 0; i < pieces; ++i) {
    const long long left = size - i * kPiece;
    const float many = static_cast<float>(left < kPiece ? left : kPiece);
    const Moments one = {many, part[2 * i * p.channels], part[(2 * i + 1) * p.channels]};
    all = i == 0 ? one : joined(all, one);
  }
  const float inverse = 1.0f / ::sqrtf(all.square / static_cast<float>(size) + p.epsilon);
  const long long weight = sentence * p.weight_step + channel;
  const float factor =
      p.has_scale ? (p.plus_one ? 1.0f + scale[p.scale_start + weight] : scale[p.scale_start + weight]) : 1.0f;
  float *to = table + sentence * 3 * p.channels + channel;
  to[0] = all.mean;
  to[p.channels] = inverse * factor;
  to[2 * p.channels] = p.has_shift ? shift[p.shift_start + weight] : 0.0f;
}

// The result of x, which has the other array in it already; zeros where no sentence is. Grid: pieces of a sentence and
// the gap behind it, sentences, channels of kLanes N.
template <class T, class U, int N>
__global__ void __launch_bounds__(256)
    style_apply(const T *x, const float *table, const float *alpha, const long long *spans, U *out,
                const __grid_constant__ StyleLast p) {
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const long long sentence = blockIdx.y, channel = (blockIdx.z * kLanes + lane) * N;
  if (channel >= p.channels) return;
  const long long start = first_place(spans, p, sentence), size = places(spans, p, sentence);
  const long long end = p.spans && sentence + 1 < p.spans ? spans[2 * sentence + 2] : p.length;
  Pack<U, N> zeros;
#pragma unroll
  for (int n = 0; n < N; ++n) zeros.v[n] = convert<U>::from(0.0f);
  if (sentence == 0 && blockIdx.x == 0) {
    for (long long i = group; i < start; i += kGroups) store(out + i * p.channels + channel, zeros);
  }
  float mean[N], factor[N], term[N], a[N], inverse[N];
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float *from = table + sentence * 3 * p.channels + channel + n;
    mean[n] = from[0];
    factor[n] = from[p.channels];
    term[n] = from[2 * p.channels];
    a[n] = p.act == 2 ? alpha[channel + n] : 1.0f;
    inverse[n] = 1.0f / a[n];
  }
  // The last block of a sentence has all of the gap.
  const long long pieces = (size + kPiece - 1) / kPiece, piece = blockIdx.x;
  if (piece >= pieces && piece > 0) return;
  const long long stop = piece + 1 < pieces ? (piece + 1) * kPiece : end - start;
#pragma unroll 4
  for (long long i = piece * kPiece + group; i < stop; i += kGroups) {
    const long long at = (start + i) * p.channels + channel;
    if (i >= size) {
      store(out + at, zeros);
      continue;
    }
    const Pack<T, N> seen = load<N>(x + at);
    Pack<U, N> packed;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float value = ::fmaf(widen(seen.v[n]) - mean[n], factor[n], term[n]);
      if (p.act == 1) value = value > value * p.slope ? value : value * p.slope;
      if (p.act == 2) {
        const float s = ::sinf(a[n] * value);
        value = ::fmaf(s * s, inverse[n], value);
      }
      packed.v[n] = convert<U>::from(value);
    }
    store(out + at, packed);
  }
}

}  // namespace pk
