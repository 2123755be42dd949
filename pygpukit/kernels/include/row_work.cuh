// row_work.cuh: kernels that turn rows into rows: which part of a row a thread has, how it is read and written.
//
// A row is `size` elements, `step` apart. Up to kHeld packs of 16 bytes a thread, it is kept in registers. Which thread
// has which element depends on the row's length only, so a row's bits do not depend on the others.
#pragma once
#include "reductions.cuh"
#include "shifted.cuh"

namespace pk {

constexpr int kHeld = 8;       // packs a thread keeps, of one row or of two
constexpr int kLongRow = 256;  // threads of a row that is read several times

struct RowWork {
  Layout<2> kept;  // rows: input and output
  long long size, step, out_step;
  long long columns, column_step, column_out_step;  // neighbouring rows, where those are the neighbours in memory
  long long lanes;                                  // threads a row (side by side: threads for neighbouring rows)
};

// Blocks of 128 threads that share an SM at least: enough of their loads are then under way at any time. One of the
// larger blocks, which longer rows need, may take all its registers.
template <int Threads>
__device__ constexpr int min_blocks(int blocks) {
  return Threads <= 256 ? blocks * 128 / Threads : 1;
}

struct Row {
  long long index, in, out;  // its number, and where it begins
  int lane;
  bool present;
};

// together: rows of each group of threads, of which this is number `which`.
__device__ __forceinline__ Row own_row(const RowWork &work, int together = 1, int which = 0) {
  const int lanes = static_cast<int>(work.lanes);
  Row row;
  row.lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int groups = static_cast<int>(blockDim.x) / lanes;
  row.index = (static_cast<long long>(blockIdx.x) * together + which) * groups + threadIdx.x / lanes;
  row.present = row.index < work.kept.size;
  long long at[2] = {0, 0};
  if (row.present) place(work.kept, row.index, at);
  row.in = at[0];
  row.out = at[1];
  return row;
}

// Packs of a row that a thread keeps, of several rows together: of more than two, which are short, one.
__host__ __device__ constexpr int packs_held(int together) { return together > 2 ? 1 : kHeld / together; }

// Whether a pack of small elements begins in the middle of one in memory: halves are then read and written whole.
template <int N, class T>
__device__ __forceinline__ bool in_halves(const T *pointer) {
  return sizeof(T) == 2 && N == 8 && phase<N>(pointer) == N / 2;
}
template <class T, int N>
__device__ __forceinline__ void load_halves(Held<T, N> &held, const T *from) {
  if constexpr (sizeof(T) == 2 && N == 8) {
    for (int h = 0; h < 2; ++h) {
      const auto half = *reinterpret_cast<const Words<2> *>(from + h * (N / 2));
      for (int j = 0; j < 2; ++j) held.bits.words.v[2 * h + j] = half.v[j];
    }
  }
}
// The first `left` elements of a pack. whole: it begins where a pack of memory does. By all threads of a warp, since
// those in place are read before a neighbour stores.
template <int N, class Index, class T>
__device__ __forceinline__ void store_halves(T *to, Index left, bool whole, const Pack<T, N> &pack) {
  __syncwarp();
  if (whole && left >= N) {
    store_pack<N>(to, pack);
    return;
  }
  for (int h = 0; h < N; h += N / 2) {
    Pack<T, N / 2> half;
    for (int j = 0; j < N / 2; ++j) half.v[j] = pack.v[h + j];
    if (left >= h + N / 2) {
      store_pack<N / 2>(to + h, half);
    } else {
      for (int j = 0; j < N / 2; ++j) {
        if (h + j < left) to[h + j] = half.v[j];
      }
    }
  }
}

// Elements i to i + N one by one; those past the end are `fill`.
template <class T>
__device__ __forceinline__ Pack<T, per_load<T>()> read_each(const T *row, const RowWork &work, long long i, T fill) {
  constexpr int N = per_load<T>();
  Pack<T, N> pack;
  for (int k = 0; k < N; ++k) pack.v[k] = i + k < work.size ? row[(i + k) * work.step] : fill;
  return pack;
}

// N elements from number i on; those past the end are `fill`. Dense: there are none, and i lies at 16 bytes.
template <bool Dense, class T>
__device__ __forceinline__ Pack<T, per_load<T>()> read(const T *row, const RowWork &work, long long i, T fill) {
  constexpr int N = per_load<T>();
  if constexpr (Dense) {
    return load_pack<N>(row + i);
  } else {
    const int by = phase<N>(row);
    if (work.step == 1 && within<N>(i, by, work.size)) return load_shifted<N>(row, i, by).pack;
    return read_each(row, work, i, fill);
  }
}

// The same where `to` may be the row itself, of which others may have written, and i may lie past the end.
template <bool Dense, class T>
__device__ __forceinline__ Pack<T, per_load<T>()> read_again(const T *row, const T *to, const RowWork &work,
                                                             long long i, T fill) {
  if (!Dense && row == to) return read_each(row, work, i, fill);
  if (i < work.size) return read<Dense>(row, work, i, fill);
  Pack<T, per_load<T>()> none;
  for (T &value : none.v) value = fill;
  return none;
}

// Elements i to i + N of a row of `size`, 0: of none. All threads of a warp call it.
template <bool Dense, class Index, class T>
__device__ __forceinline__ void write(T *row, const RowWork &work, Index i, Index size,
                                      const Pack<T, per_load<T>()> &pack) {
  constexpr int N = per_load<T>();
  if constexpr (Dense) {
    if (i < size) store_pack<N>(row + i, pack);
  } else if (work.out_step == 1) {
    if constexpr (sizeof(T) == 2 && N == 8) {
      const int by = phase<N>(row);
      if (__all_sync(0xffffffffu, by % (N / 2) == 0)) {
        store_halves<N>(row + i, size - i, by == 0, pack);
        return;
      }
    }
    store_shifted<N>(row, i, size, pack, static_cast<int>(work.lanes));
  } else {
    for (int k = 0; k < N; ++k) {
      if (i + k < size) row[(i + k) * work.out_step] = pack.v[k];
    }
  }
}

// A thread's packs of a row; elements past the end are `fill`. All loads are under way before the first is looked at.
template <bool Dense, class T, class H, int Each>
__device__ __forceinline__ void read_row(const T *in, const RowWork &work, const Row &row, T fill, H (&held)[Each]) {
  constexpr int N = per_load<T>();
  const int size = row.present ? static_cast<int>(work.size) : 0;
  const int lanes = static_cast<int>(work.lanes);
  const T *from = in + row.in;
  const int by = Dense ? 0 : phase<N>(from);
  const bool halves = !Dense && in_halves<N>(from) && work.step == 1;
  Pack<T, N> none;
  for (int j = 0; j < N; ++j) none.v[j] = fill;
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    const int i = (k * lanes + row.lane) * N;
    if (!Dense && halves && i + N <= size) {
      load_halves(held[k], from + i);
    } else if (Dense ? i < size : work.step == 1 && within<N>(i, by, size)) {
      held[k].load(from + i - by);
    } else {
      held[k].keep(none);
    }
  }
  if constexpr (!Dense) {
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      const int i = (k * lanes + row.lane) * N;
      if (halves && i + N <= size) continue;
      if (work.step == 1 && within<N>(i, by, size)) {
        H next = held[k];
        if (by) next.load(from + i - by + N);  // what the neighbour loaded: it is near
        held[k].bits = shifted(held[k].bits, next.bits, by);
      } else if (i < size) {
        held[k].keep(read_each(from, work, i, fill));
      }
    }
  }
}

}  // namespace pk
