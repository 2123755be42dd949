// masks.cu: the elements that a boolean mask selects, and their positions, in C order.
//
// Selected elements are counted by chunks, the chunks' by groups; from both follows where a chunk's begin in the
// result.
#include "numeric.cuh"
#include "overlap.cuh"
#include "pack.cuh"

namespace pk {

constexpr int kEach = 8;             // elements of a thread
constexpr int kChunk = 256 * kEach;  // of a block
constexpr int kGroup = 256;          // chunks

// Bit i: byte i is not 0.
__device__ __forceinline__ unsigned nonzero_bytes(unsigned word) {
  const unsigned high = (word | ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu)) & 0x80808080u;
  return (high >> 7 | high >> 14 | high >> 21 | high >> 28) & 0xfu;
}

__device__ __forceinline__ int sum_before(int value, int lane) {
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  return sum - value;
}

// counts[c] = selected elements of chunk c, a warp each; groups[g], zeros before: of group g.
__global__ void __launch_bounds__(256)
    count_chunks(const unsigned char *mask, int *counts, unsigned long long *groups, long long size) {
  let_next_begin();
  __shared__ int sums[8];
  const long long chunk = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const long long first = chunk * kChunk;
  int kept_count = 0;
  if (first + kChunk <= size && reinterpret_cast<unsigned long long>(mask) % 16 == 0) {
    const auto *words = reinterpret_cast<const uint4 *>(mask + first);
#pragma unroll
    for (int k = 0; k < kChunk / 16 / 32; ++k) {
      const uint4 word = words[k * 32 + lane];
      kept_count += __popc(nonzero_bytes(word.x) | nonzero_bytes(word.y) << 4 | nonzero_bytes(word.z) << 8 |
                      nonzero_bytes(word.w) << 12);
    }
  } else {
    for (long long i = first + lane; i < first + kChunk && i < size; i += 32) kept_count += mask[i] != 0;
  }
  for (int step = 16; step > 0; step /= 2) kept_count += __shfl_down_sync(0xffffffffu, kept_count, step);
  if (lane == 0) {
    sums[threadIdx.x / 32] = kept_count;
    if (first < size) counts[chunk] = kept_count;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned long long all = 0;
  for (int w = 0; w < 8; ++w) all += sums[w];
  atomicAdd(groups + static_cast<long long>(blockIdx.x) * 8 / kGroup, all);
}

// starts[c] = selected elements before chunk c; a block a group.
__global__ void __launch_bounds__(kGroup)
    start_chunks(const int *counts, const long long *groups, long long *starts, long long chunks) {
  let_next_begin();
  await_previous();
  __shared__ long long before[8];
  __shared__ int sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long chunk = static_cast<long long>(blockIdx.x) * kGroup + threadIdx.x;
  const int own = chunk < chunks ? counts[chunk] : 0;
  long long earlier = 0;
  for (long long g = threadIdx.x; g < blockIdx.x; g += kGroup) earlier += groups[g];
  for (int step = 16; step > 0; step /= 2) earlier += __shfl_xor_sync(0xffffffffu, earlier, step);
  const int rank = sum_before(own, lane);
  if (lane == 0) before[warp] = earlier;
  if (lane == 31) sums[warp] = rank + own;
  __syncthreads();
  long long start = rank;
  for (int w = 0; w < 8; ++w) start += before[w] + (w < warp ? sums[w] : 0);
  if (chunk < chunks) starts[chunk] = start;
}

// The thread's elements of a mask, as bits.
template <int Each>
__device__ __forceinline__ unsigned selected(const unsigned char *mask, long long first, long long size) {
  unsigned bits = 0;
  if (first + Each <= size && reinterpret_cast<unsigned long long>(mask) % Each == 0) {
    const Pack<unsigned, Each / 4> words = load<Each / 4>(reinterpret_cast<const unsigned *>(mask + first));
#pragma unroll
    for (int k = 0; k < Each / 4; ++k) bits |= nonzero_bytes(words.v[k]) << 4 * k;
    return bits;
  }
  for (int k = 0; k < Each && first + k < size; ++k) bits |= static_cast<unsigned>(mask[first + k] != 0) << k;
  return bits;
}

// Packs the selected ones of values, elements of the block's chunk, into out. Unless the elements are large this goes
// through shared memory, where they lie as at their place in `out`, so that 16 bytes are written at a time.
template <class T, int Each>
__device__ __forceinline__ void pack_chunk(unsigned bits, const T (&values)[Each], long long start, T *out) {
  constexpr bool Staged = sizeof(T) <= 8;
  constexpr int N = Staged ? 16 / static_cast<int>(sizeof(T)) : 1;
  constexpr int Threads = kChunk / Each;
  alignas(16) __shared__ T staging[Staged ? kChunk + N : 1];
  __shared__ int sums[Threads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int own = __popc(bits);
  int rank = sum_before(own, lane), kept_count = 0;
  if (lane == 31) sums[warp] = rank + own;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < Threads / 32; ++w) {
    if (w < warp) rank += sums[w];
    kept_count += sums[w];
  }
  T *target = out + start;
  const int lead = Staged ? static_cast<int>(reinterpret_cast<unsigned long long>(target) % 16 / sizeof(T)) : 0;
  T *packed = Staged ? staging + lead : target;
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    if (bits >> k & 1u) packed[rank++] = values[k];
  }
  if constexpr (Staged) {
    __syncthreads();
    target -= lead;
    const int end = lead + kept_count;
    for (int k = threadIdx.x * N; k < end; k += Threads * N) {
      if (k >= lead && k + N <= end) {
        store<N>(target + k, load<N>(staging + k));
      } else {
        for (int j = k < lead ? lead : k; j < k + N && j < end; ++j) target[j] = staging[j];
      }
    }
  }
}

// Elements of a thread: the narrower they are, the more of the work is not theirs.
template <class T>
__device__ constexpr int each() {
  return sizeof(T) <= 2 ? 16 : 8;
}

template <class T>
__global__ void __launch_bounds__(kChunk / each<T>(), sizeof(T) <= 2   ? 16
                                                      : sizeof(T) <= 4 ? 7
                                                                       : 1)
    select_elements(const unsigned char *mask, const T *array, const long long *starts, T *out, long long size,
                    long long early) {
  constexpr int Each = each<T>();
  constexpr int N = sizeof(T) <= 8 ? 16 / static_cast<int>(sizeof(T)) : 1;
  const long long first = static_cast<long long>(blockIdx.x) * kChunk + threadIdx.x * Each;
  const bool whole = first + Each <= size && reinterpret_cast<unsigned long long>(array) % (N * sizeof(T)) == 0;
  Pack<T, N> packs[Each / N];
  if (early && whole) {
#pragma unroll
    for (int k = 0; k < Each / N; ++k) packs[k] = load<N>(array + first + k * N);
  }
  const unsigned bits = selected<Each>(mask, first, size);
  if (!early && whole) {
#pragma unroll
    for (int k = 0; k < Each / N; ++k) {
      if (bits >> k * N & ((1u << N) - 1u)) packs[k] = load<N>(array + first + k * N);
    }
  }
  T values[Each];
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    if (whole) {
      values[k] = packs[k / N].v[k % N];
    } else if (bits >> k & 1u) {
      values[k] = array[first + k];
    }
  }
  await_previous();  // of which only the starts are needed
  pack_chunk<T, Each>(bits, values, starts[blockIdx.x], out);
}

__global__ void __launch_bounds__(256)
    select_positions(const unsigned char *mask, const long long *starts, long long *out, long long size) {
  const long long first = static_cast<long long>(blockIdx.x) * kChunk + threadIdx.x * kEach;
  long long values[kEach];
  for (int k = 0; k < kEach; ++k) values[k] = first + k;
  await_previous();
  pack_chunk<long long, kEach>(selected<kEach>(mask, first, size), values, starts[blockIdx.x], out);
}

}  // namespace pk
