// walk.cuh: how threads share the elements of a result: 16 bytes of neighbours each, wherever its operands lie.
#pragma once
#include "taken.cuh"

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
  __device__ inline Coming(const T *from) : by(phase<N>(from)) {
    low.load(from - by);
    if (by) high.load(from - by + N);
  }
  __device__ inline explicit Coming(const Pack<T, N> &pack) : by(0) { low.keep(pack); }
  __device__ inline Pack<T, N> arrived() const { return by ? shifted(low.bits, high.bits, by).pack : low.pack(); }
};
template <class T, int N>
struct Coming<T, N, false> {  // a pack that is no words must lie at such a multiple
  Pack<T, N> kept;
  __device__ inline Coming(const T *from) : kept(load_pack<N>(from)) {}
  __device__ inline explicit Coming(const Pack<T, N> &pack) : kept(pack) {}
  __device__ inline Pack<T, N> arrived() const { return kept; }
};

// Whether the packs that N elements lie in are of their row, of which `before` lie before them and `left` from there
// on.
template <int N, class T>
__device__ inline bool reaches(const T *from, long long before, long long left) {
  const int by = phase<N>(from);
  if (by == 0) return left >= N;
  return N > 1 && by_words<T, N>() && by <= before && 2 * N - by <= left;
}

// Operands of any layout, walked as the result is counted; the last is the result. Fewer than 2^31 elements, and so far
// each operand reaches at most: places are of 32 bits.
template <int Operands>
struct Walk {
  unsigned size;
  int ndim;         // at least one
  unsigned packs;   // 1: a thread takes neighbours, whose results lie in a pack; 0: elements a block's threads apart
  unsigned linear;  // bit k: operand k lies in memory as the result is counted
  // Of each axis; a quotient by it is a product and a shift.
  unsigned extent[kMaxDims], factor[kMaxDims], shift[kMaxDims];
  // Elements from the pointer to the first one, and past the last one.
  int start[Operands], end[Operands];
  int stride[Operands][kMaxDims];
};

template <int Operands>
__device__ inline bool is_dense(const Walk<Operands> &walk) {
  return walk.linear == (1u << Operands) - 1;
}

// A number below 2^31 over the extent of an axis (Granlund and Montgomery, 1994).
template <int Operands>
__device__ inline unsigned over_extent(const Walk<Operands> &walk, unsigned number, int axis) {
  return (__umulhi(number, walk.factor[axis]) + number) >> walk.shift[axis];
}

// The elements that a thread takes.
template <int N, int Operands>
struct Share {
  const Walk<Operands> &walk;
  unsigned first, spacing;  // number of the first element, and from one to the next
  bool full, row;           // whether all are there, and neighbours; whether they are so in their row
  int at[Operands];         // where the first one lies, if they are

  __device__ inline explicit Share(const Walk<Operands> &walk) : walk(walk) {
    spacing = walk.packs ? 1 : blockDim.x;
    first = blockIdx.x * blockDim.x * N + threadIdx.x * (walk.packs ? N : 1);
    full = walk.packs && first + N <= walk.size;
    row = false;
    if (full) find();
  }
  __device__ inline bool none() const { return first >= walk.size; }

  // Those of operand k.
  template <class T>
  __device__ inline Taken<T, N> begin(const T *operand, int k) const {
    Taken<T, N> taken;
    const bool linear = walk.linear >> k & 1;
    if (linear ? full : row) {
      taken.row(operand, at[k], walk.end[k], linear ? 1 : walk.stride[k][walk.ndim - 1]);
    } else {
      int places[N];
      find_each(k, places);
      taken.each(operand, places);
    }
    return taken;
  }
  template <class T>
  __device__ inline void store(T *result, const Pack<T, N> &pack) const {
    constexpr int k = Operands - 1;
    const Held<T, N> held = in_words(pack);
    if (full) {
      store_pack<N>(result + at[k], held.pack());
    } else {
      int places[N];
      find_each(k, places);
      for (int j = 0; j < N; ++j) {
        if (first + j * spacing < walk.size) result[places[j]] = held.pack().v[j];
      }
    }
  }

 private:
  __device__ inline void find() {
    unsigned rest = first, left = walk.size - first;
    for (int k = 0; k < Operands; ++k) at[k] = walk.start[k];
#pragma unroll 1
    for (int axis = walk.ndim - 1; axis > 0; --axis) {
      const unsigned above = over_extent(walk, rest, axis), here = rest - above * walk.extent[axis];
      if (axis == walk.ndim - 1) left = walk.extent[axis] - here;
      for (int k = 0; k < Operands; ++k) at[k] += static_cast<int>(here) * walk.stride[k][axis];
      rest = above;
    }
    for (int k = 0; k < Operands; ++k) at[k] += static_cast<int>(rest) * walk.stride[k][0];
    row = left >= N;
  }
  // Each of them in operand k, the first in place of those past the last of all; a few at a time, for want of
  // registers.
  __device__ inline void find_each(int k, int (&places)[N]) const {
    constexpr int Step = N < 4 ? N : 4;
    const bool linear = walk.linear >> k & 1;
#pragma unroll
    for (int from = 0; from < N; from += Step) {
      unsigned rest[Step];
      for (int j = 0; j < Step; ++j) {
        const unsigned number = first + (from + j) * spacing;
        rest[j] = number < walk.size ? number : first;
        places[from + j] = walk.start[k];
      }
#pragma unroll 1
      for (int axis = linear ? 0 : walk.ndim - 1; axis > 0; --axis) {
        const int step = walk.stride[k][axis];
        for (int j = 0; j < Step; ++j) {
          const unsigned above = over_extent(walk, rest[j], axis);
          places[from + j] += static_cast<int>(rest[j] - above * walk.extent[axis]) * step;
          rest[j] = above;
        }
      }
      const int step = linear ? 1 : walk.stride[k][0];
      for (int j = 0; j < Step; ++j) places[from + j] += static_cast<int>(rest[j]) * step;
    }
  }
};

}  // namespace pk
