// span.cuh: packs read anywhere in a span of memory that is all an array's, also across its rows.
#pragma once
#include "shifted.cuh"

namespace pk {

// From the first element that an operand touches to the one behind the last.
template <class T>
struct Span {
  const T *first, *end;

  // Whether the packs of memory that N elements lie in are within it.
  template <int N>
  __device__ __forceinline__ bool holds(const T *from) const {
    const int by = phase<N>(from);
    return from - by >= first && end - (from - by) >= (by ? 2 * N : N);
  }
};

// N elements of such packs on their way, loaded without a branch. At a multiple of a pack's bytes both are the same.
template <class T, int N>
struct Across {
  static constexpr bool kWords = N > 1 && by_words<T, N>();
  Held<T, N> low, high;
  int by = 0;
  __device__ __forceinline__ void load(const T *from) {
    by = phase<N>(from);
    low.load(from - by);
    if constexpr (kWords) high.load(from + (by ? N - by : 0));
  }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) {
    by = 0;
    low.keep(pack);
    if constexpr (kWords) high.keep(pack);
  }
  __device__ __forceinline__ Held<T, N> arrived() const {
    Held<T, N> result = low;
    if constexpr (kWords) result.bits = shifted(low.bits, high.bits, by);
    return result;
  }
};

// Elements number i to i + count as fetch() gives them, one by one: for the few packs that do not lie in a span.
template <class T, int N, class Fetch>
__device__ __forceinline__ Pack<T, N> read_few(const Fetch &fetch, long long i, int count) {
  Pack<T, N> pack{};
#pragma unroll 1
  for (int k = 0; k < N; ++k) {
    for (int j = 0; j < N - 1; ++j) pack.v[j] = pack.v[j + 1];
    pack.v[N - 1] = k < count ? fetch(i + k) : T{};
  }
  return pack;
}

// The second of a few values becomes the first, and so on: what a loop takes one by one stays in registers.
template <int Count, class V>
__device__ __forceinline__ void rotate(V (&values)[Count]) {
  for (int j = 0; j < Count - 1; ++j) values[j] = values[j + 1];
}

}  // namespace pk
