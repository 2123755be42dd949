// span.cuh: packs read anywhere in a span of memory that is all an array's, also across its rows.
#pragma once
#include "shifted.cuh"

namespace pk {

// Elements from the last multiple of a word's four bytes to the pointer; none of elements that are no smaller.
template <class T>
__device__ __forceinline__ int in_word(const T *pointer) {
  if constexpr (sizeof(T) >= 4) return 0;
  return static_cast<int>(reinterpret_cast<unsigned long long>(pointer) % 4) / static_cast<int>(sizeof(T));
}

// From the first element that an operand touches to the one behind the last.
template <class T>
struct Span {
  const T *first, *end;

  // Whether the words of memory that N elements lie in are within it.
  template <int N>
  __device__ __forceinline__ bool holds(const T *from) const {
    constexpr int W = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
    const int by = in_word(from);
    return from - by >= first && end - (from - by) >= (by ? N + W : N);
  }
};

// N elements from anywhere on their way, loaded without a branch: by themselves, small ones by the words that they lie
// in. A warp's loads together take whole sectors, which the first of them brings near.
template <class T, int N>
struct Across {
  static constexpr bool kSmall = sizeof(T) < 4 && by_words<T, N>();
  static constexpr int kWords = static_cast<int>(sizeof(T)) * N / 4;
  Held<T, N> low;
  unsigned last = 0;
  int by = 0;
  __device__ __forceinline__ void load(const T *from) {
    if constexpr (kSmall) {
      by = in_word(from);
      const unsigned *words = reinterpret_cast<const unsigned *>(from - by);
#pragma unroll
      for (int k = 0; k < kWords; ++k) low.bits.words.v[k] = words[k];
      if (by) last = words[kWords];
    } else {
      Pack<T, N> pack;
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = from[k];
      low.keep(pack);
    }
  }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) {
    by = 0;
    low.keep(pack);
  }
  __device__ __forceinline__ Held<T, N> arrived() const {
    Held<T, N> result = low;
    if constexpr (kSmall) {
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        const unsigned next = k + 1 < kWords ? low.bits.words.v[k + 1] : last;
        result.bits.words.v[k] = __funnelshift_r(low.bits.words.v[k], next, by * static_cast<int>(sizeof(T)) * 8);
      }
    }
    return result;
  }
};

// Elements number i to i + count as fetch() gives them, one by one: for the few packs that do not lie in a span.
template <class T, int N, class Fetch>
__device__ __forceinline__ Pack<T, N> read_single(const Fetch &fetch, long long i, int count) {
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
