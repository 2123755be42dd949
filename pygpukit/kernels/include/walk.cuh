// walk.cuh: how threads share the elements of a result: 16 bytes of neighbours each, wherever its operands lie.
#pragma once
#include "shifted.cuh"

// The simulator's compiler takes long over what is put into every kernel.
#ifdef PYGPUKIT_SIM
#define PK_INLINE __device__ inline
#else
#define PK_INLINE __device__ __forceinline__
#endif

namespace pk {

// Elements of each operand that one thread takes: 16 bytes of the wider type.
template <class S, class D>
__device__ constexpr int together() {
  return per_load<S>() < per_load<D>() ? per_load<S>() : per_load<D>();
}

// N elements on their way: the packs of memory that they lie in. At a multiple of a pack's bytes it is one.
template <class T, int N, bool Words = (N > 1 && by_words<T, N>())>
struct Coming {
  Held<T, N> low, high;
  int by;
  PK_INLINE Coming(const T *from) : by(phase<N>(from)) {
    low.load(from - by);
    if (by) high.load(from - by + N);
  }
  PK_INLINE explicit Coming(const Pack<T, N> &pack) : by(0) { low.keep(pack); }
  PK_INLINE Pack<T, N> arrived() const { return by ? shifted(low.bits, high.bits, by).pack : low.pack(); }
};
template <class T, int N>
struct Coming<T, N, false> {  // a pack that is no words must lie at such a multiple
  Pack<T, N> kept;
  PK_INLINE Coming(const T *from) : kept(load_pack<N>(from)) {}
  PK_INLINE explicit Coming(const Pack<T, N> &pack) : kept(pack) {}
  PK_INLINE Pack<T, N> arrived() const { return kept; }
};

// Whether the packs that N elements lie in are of their row, of which `before` lie before them and `left` from there on.
template <int N, class T>
PK_INLINE bool reaches(const T *from, long long before, long long left) {
  const int by = phase<N>(from);
  if (by == 0) return left >= N;
  return N > 1 && by_words<T, N>() && by <= before && 2 * N - by <= left;
}

// Operands of any layout; the last is the result.
template <int Operands>
struct Walk {
  Layout<Operands> layout;  // ndim < 0: all are dense
  long long packs;          // 1: a thread takes neighbours, which lie in a pack of the result; 0: an element
};

// The elements that a thread takes, and where one of them lies. Operands may have the elements of their rows in
// reverse, every second, or one for all.
template <int N, int Operands>
struct Share {
  const Layout<Operands> &layout;
  const bool packs;
  long long first, end;
  long long at[Operands];  // of the element that was found last: where it lies in each operand,
  long long before, left;  // and how many elements of its row lie before it and from it on

  PK_INLINE Share(const Walk<Operands> &walk, long long thread) : layout(walk.layout), packs(walk.packs) {
    const int each = packs ? N : 1;
    first = thread * each;
    end = first + each < layout.size ? first + each : layout.size;
  }

  PK_INLINE void find(long long i) {
    if (layout.ndim < 0) {
      for (long long &place : at) place = i;
    } else {
      locate(layout, i, at);
    }
  }
  PK_INLINE long long step(int k) const {
    return layout.ndim < 0 ? 1 : layout.ndim ? layout.stride[k][layout.ndim - 1] : 0;
  }

  // Whether the first, which was found, and its neighbours make a pack of the result.
  PK_INLINE bool whole() {
    if (!packs || first + N > layout.size) return false;
    const long long row = layout.ndim <= 0 ? layout.size : layout.shape[layout.ndim - 1];
    before = layout.ndim < 2 ? first : static_cast<unsigned>(first) % static_cast<unsigned>(row);
    left = row - before;
    return left >= N;
  }
  // Whether the packs of operand k that they lie in are of its row.
  template <class T>
  PK_INLINE bool within_row(const T *operand, int k) const {
    const T *from = operand + at[k];
    const long long own = step(k);
    if (own == -1) return reaches<N>(from - (N - 1), left - N, before + N);
    if (own == 2)
      return reaches<N>(from, 2 * before, 2 * left - 1) && reaches<N>(from + N, 2 * before + N, 2 * left - 1 - N);
    return own == 0 || reaches<N>(from, before, left);
  }
  // They themselves.
  template <class T>
  PK_INLINE Coming<T, N> begin(const T *operand, int k) const {
    const T *from = operand + at[k];
    const long long own = step(k);
    if (own == 1) return Coming<T, N>(from);
    Pack<T, N> pack;
    if (own == -1) {
      const Pack<T, N> turned = Coming<T, N>(from - (N - 1)).arrived();
      for (int j = 0; j < N; ++j) pack.v[j] = turned.v[N - 1 - j];
    } else if (own == 2) {
      const Coming<T, N> first_half(from), second_half(from + N);
      const Pack<T, N> low = first_half.arrived(), high = second_half.arrived();
      for (int j = 0; j < N; ++j) pack.v[j] = 2 * j < N ? low.v[2 * j % N] : high.v[2 * j % N];
    } else {
      pack.v[0] = *from;
      for (int j = 1; j < N; ++j) pack.v[j] = pack.v[0];
    }
    return Coming<T, N>(pack);
  }
  template <class T>
  PK_INLINE void store(T *result, const Pack<T, N> &pack) const {
    store_pack<N>(result + at[Operands - 1], pack);
  }
};

}  // namespace pk
