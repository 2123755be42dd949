// shifted.cuh: packs of elements that begin anywhere: what lies across two packs of memory, put together.
#pragma once
#include "rows.cuh"

namespace pk {

// Elements from the last multiple of a pack's bytes to the pointer.
template <int N, class T>
__device__ __forceinline__ int phase(const T *pointer) {
  return static_cast<int>(reinterpret_cast<unsigned long long>(pointer) % (N * sizeof(T))) / static_cast<int>(sizeof(T));
}

// The elements from number `by` on, less than N, of two packs that follow each other.
template <class T, int N>
__device__ __forceinline__ Bits<T, N> shifted(const Bits<T, N> &low, const Bits<T, N> &high, int by) {
  constexpr int kWords = Bits<T, N>::kWords;
  const int bytes = by * static_cast<int>(sizeof(T));
  unsigned w[2 * kWords];
  for (int j = 0; j < kWords; ++j) {
    w[j] = low.words.v[j];
    w[j + kWords] = high.words.v[j];
  }
  if constexpr (kWords > 2) {
    for (int j = 0; j < kWords + 2; ++j) w[j] = bytes & 8 ? w[j + 2] : w[j];
  }
  if constexpr (kWords > 1 && sizeof(T) <= 4) {
    for (int j = 0; j < kWords + 1; ++j) w[j] = bytes & 4 ? w[j + 1] : w[j];
  }
  if constexpr (sizeof(T) < 4) {
    for (int j = 0; j < kWords; ++j) w[j] = __funnelshift_r(w[j], w[j + 1], bytes % 4 * 8);
  }
  Bits<T, N> result;
  for (int j = 0; j < kWords; ++j) result.words.v[j] = w[j];
  return result;
}

// Whether the packs of memory that elements i to i + N lie in are within a row of so many. by: the row's phase.
template <int N, class Index>
__device__ __forceinline__ bool within(Index i, int by, Index size) {
  return i >= by && i - by + (by ? 2 * N : N) <= size;
}

// Elements i to i + N of a row whose packs are within it.
template <int N, class T>
__device__ __forceinline__ Bits<T, N> load_shifted(const T *row, long long i, int by) {
  Held<T, N> low, high;
  low.load(row + i - by);
  high.load(row + i + (by ? N - by : 0));
  return shifted(low.bits, high.bits, by);
}

// Stores a pack of each lane of a warp: all of them call it, and neighbours among `lanes` of them, a power of two, have
// neighbouring packs of one row. i: number of the first element. size: elements of the row, 0: none is stored.
template <int N, class Index, class T>
__device__ __forceinline__ void store_shifted(T *row, Index i, Index size, const Pack<T, N> &pack, int lanes) {
  const int by = phase<N>(row);
  const int last = (lanes < 32 ? lanes : 32) - 1;
  const int lane = static_cast<int>(threadIdx.x) & last;
  Bits<T, N> own, before;
  own.pack = pack;
  __syncwarp();  // where the row is stored in place, a lane's last elements are read before the next lane stores them
  for (int j = 0; j < Bits<T, N>::kWords; ++j) {
    const unsigned word = __shfl_up_sync(0xffffffffu, own.words.v[j], 1);
    before.words.v[j] = by ? word : own.words.v[j];
  }
  // A pack of memory is stored by the lane that has its end; at the ends of rows and warps elements are, by their own.
  const bool mine = (by == 0 || lane > 0) && i - by + N <= size;
  const bool next = by == 0 || (lane < last && i - by + 2 * N <= size);
  T *to = row + i;
  if (mine) store_pack<N>(to - by, shifted(before, own, by ? N - by : 0).pack);
  if (!mine || !next) {
    const int first = mine ? N - by : 0;
    int end = next ? N - by : N;
    if (i + end > size) end = static_cast<int>(size - i);
    for (int j = 0; j < N; ++j) {
      if (j >= first && j < end) to[j] = pack.v[j];
    }
  }
}

}  // namespace pk
