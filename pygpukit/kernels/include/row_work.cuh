// row_work.cuh: kernels that turn rows into rows: which part of a row a thread has, how it is read and written.
//
// A row is `size` elements, `step` apart. Up to kHeld packs of 16 bytes a thread, it is kept in registers. Which thread
// has which element depends on the row's length only, so a row's bits do not depend on the others.
#pragma once
#include "reductions.cuh"

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
__device__ constexpr int least_blocks(int wanted) {
  return Threads <= 256 ? wanted * 128 / Threads : 1;
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
  row.index = static_cast<long long>(blockIdx.x) * (static_cast<int>(blockDim.x) / lanes) + threadIdx.x / lanes;
  row.index = row.index * together + which;
  row.present = row.index < work.kept.size;
  long long at[2] = {0, 0};
  if (row.present) place(work.kept, row.index, at);
  row.in = at[0];
  row.out = at[1];
  return row;
}

// N elements from number i on; those past the end are `fill`. Dense: there are none, and i lies at 16 bytes.
template <bool Dense, class T>
__device__ __forceinline__ Pack<T, per_load<T>()> read(const T *row, const RowWork &work, long long i, T fill) {
  constexpr int N = per_load<T>();
  if constexpr (Dense) {
    return load_pack<N>(row + i);
  } else {
    Pack<T, N> pack;
    for (int k = 0; k < N; ++k) pack.v[k] = i + k < work.size ? row[(i + k) * work.step] : fill;
    return pack;
  }
}

template <bool Dense, class T>
__device__ __forceinline__ void write(T *row, const RowWork &work, long long i, const Pack<T, per_load<T>()> &pack) {
  constexpr int N = per_load<T>();
  if constexpr (Dense) {
    store_pack<N>(row + i, pack);
  } else {
    for (int k = 0; k < N; ++k) {
      if (i + k < work.size) row[(i + k) * work.out_step] = pack.v[k];
    }
  }
}

// A thread's packs of a row; elements past the end are `fill`. All loads are under way before the first is looked at.
template <bool Dense, class T, class H, int Each>
__device__ __forceinline__ void read_row(const T *in, const RowWork &work, const Row &row, T fill, H (&held)[Each]) {
  constexpr int N = per_load<T>();
  const int size = row.present ? static_cast<int>(work.size) : 0;
  const int lanes = static_cast<int>(work.lanes);
  Pack<T, N> none;
  for (int j = 0; j < N; ++j) none.v[j] = fill;
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    const int i = (k * lanes + row.lane) * N;
    if (i >= size) {
      held[k].keep(none);
    } else if constexpr (Dense) {
      held[k].load(in + row.in + i);
    } else {
      held[k].keep(read<false>(in + row.in, work, i, fill));
    }
  }
}

}  // namespace pk
