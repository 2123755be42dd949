// softmax.cu: softmax and log_softmax along rows kept in registers, and along longer rows.
#include "exponentials.cuh"
#include "span.cuh"

namespace pk {

struct SoftmaxWork {
  RowWork row;
  long long log;            // 1: log_softmax
  long long span;           // elements from the pointer on that are the input's, between its rows too
  long long chunk, chunks;  // of long rows: elements of a part, parts of a row
};

// The packs of a row as read_row() reads them, but that they may reach across its ends into what lies beside it. alone:
// they may not, as others of the launch write there.
template <class T, class H, int Each>
__device__ __forceinline__ void read_near(const T *in, const SoftmaxWork &work, const Row &row, bool alone, T fill,
                                          H (&held)[Each]) {
  constexpr int N = per_load<T>();
  const int size = row.present ? static_cast<int>(work.row.size) : 0;
  const int lanes = static_cast<int>(work.row.lanes);
  const T *from = in + row.in;
  const bool halves = in_halves<N>(from) && work.row.step == 1;
  const Span<T> span{alone ? from : in, alone ? from + size : in + work.span};
  Pack<T, N> none;
  for (int j = 0; j < N; ++j) none.v[j] = fill;
  Across<T, N> coming[Each];
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    const int i = (k * lanes + row.lane) * N;
    if (halves && i + N <= size) {
      load_halves(coming[k].low, from + i);
    } else if (i + N <= size && work.row.step == 1 && span.template holds<N>(from + i)) {
      coming[k].load(from + i);
    } else {
      coming[k].keep(i < size ? read_each(from, work.row, i, fill) : none);
    }
  }
#pragma unroll
  for (int k = 0; k < Each; ++k) held[k] = coming[k].arrived();
}

// The results of packs of rows; store takes number of the row, of the pack, and the pack.
template <class T, bool Whole, int Together, int Each, class Store>
__device__ __forceinline__ void softmax_packs(const Held<T, per_load<T>()> (&held)[Together][Each],
                                              const Row (&rows)[Together], const SoftmaxWork &work,
                                              const Store &store) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  __shared__ A tops[32][Together], sums[32][Together];
  const int lanes = static_cast<int>(work.row.lanes);
  const int size = static_cast<int>(work.row.size);
  A values[Together][Each][N], top[Together], sum[Together] = {};
#pragma unroll
  for (int r = 0; r < Together; ++r) {
    top[r] = lowest<A>();
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      if (k * lanes * N >= size) break;
      widen_pack(held[r][k].pack(), values[r][k]);
      for (int j = 0; j < N; ++j) top[r] = Larger()(top[r], values[r][k][j]);
    }
  }
  all_fold(Larger(), top, lanes, tops);
#pragma unroll
  for (int r = 0; r < Together; ++r) {
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      if (k * lanes * N >= size) break;
      const int i = (k * lanes + rows[r].lane) * N;
      A part = 0;
      for (int j = 0; j < N; ++j) {
        const A value = values[r][k][j] - top[r];
        const A exponential = exponential_of<T>(value);
        values[r][k][j] = work.log ? value : exponential;
        part += Whole || i + j < size ? exponential : A(0);
      }
      if (i < size) sum[r] += part;
    }
  }
  all_fold(Plus(), sum, lanes, sums);
#pragma unroll
  for (int r = 0; r < Together; ++r) {
    const A inverse = A(1) / sum[r];
    const A logarithm = work.log ? log(sum[r]) : A(0);
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      if (k * lanes * N >= size) break;
      for (int j = 0; j < N; ++j) {
        values[r][k][j] = work.log ? values[r][k][j] - logarithm : share<T>(values[r][k][j], sum[r], inverse);
      }
      store(r, k, narrow_pack<T, N>(values[r][k]));
    }
  }
}

// A group of threads has one row or, where they are short, two or four, which share every wait.
template <class T, bool Dense, int Threads, int Together>
__global__ void __launch_bounds__(Threads, min_blocks<Threads>(sizeof(T) > 2 ? 8
                                                               : Dense       ? 5
                                                                             : 6))
    softmax_rows(const T *in, T *out, const __grid_constant__ SoftmaxWork work) {
  constexpr int N = per_load<T>(), Each = packs_held(Together);
  const int lanes = static_cast<int>(work.row.lanes), size = static_cast<int>(work.row.size);
  Row rows[Together];
  Held<T, N> held[Together][Each];
#pragma unroll
  for (int r = 0; r < Together; ++r) {
    rows[r] = own_row(work.row, Together, r);
    const T none = convert<T>::from(lowest<compute_t<T>>());
    if constexpr (Dense) {
      read_row<true>(in, work.row, rows[r], none, held[r]);
    } else {
      read_near(in, work, rows[r], in == out, none, held[r]);
    }
  }
  softmax_packs<T, Dense>(held, rows, work, [&](int r, int k, const Pack<T, N> &pack) {
    const int i = (k * lanes + rows[r].lane) * N;
    write<Dense>(out + rows[r].out, work.row, i, rows[r].present ? size : 0, pack);
  });
}

constexpr int kStagedThreads = 128, kStagedBytes = 16384;  // of a block: its rows

// As softmax_rows(), of short rows that follow each other in memory and begin anywhere: a block copies its rows to
// shared memory and back by whole packs of memory. The elements of a thread, and so the bits, are the same.
template <class T, int Together>
__global__ void __launch_bounds__(kStagedThreads, Together > 2 ? 8 : 4)
    softmax_staged(const T *in, T *out, const __grid_constant__ SoftmaxWork work) {
  constexpr int N = per_load<T>(), Each = packs_held(Together);
  alignas(16) __shared__ T staged[kStagedBytes / sizeof(T) + N];
  const int lanes = static_cast<int>(work.row.lanes), size = static_cast<int>(work.row.size);
  const int groups = kStagedThreads / lanes;
  const long long first = static_cast<long long>(blockIdx.x) * (groups * Together), left = work.row.kept.size - first;
  const int elements = static_cast<int>(left < groups * Together ? left : groups * Together) * size;
  const T *const from = in + work.row.kept.start[0] + first * size;
  T *const to = out + work.row.kept.start[1] + first * size;
  // Calls what takes places of packs in shared memory that begin where one of memory does, and of single elements.
  const auto each_pack = [&](int by, const auto &whole, const auto &single) {
    for (int i = static_cast<int>(threadIdx.x) * N; i < elements + by; i += kStagedThreads * N) {
      if (i >= by && i + N <= elements + by) {
        whole(i);
      } else {
        for (int j = i; j < i + N; ++j) {
          if (j >= by && j < elements + by) single(j);
        }
      }
    }
  };
  const int by_in = phase<N>(from), by_out = phase<N>(to);
  each_pack(
      by_in, [&](int i) { store_pack<N>(staged + i, load_pack<N>(from + (i - by_in))); },
      [&](int i) { staged[i] = from[i - by_in]; });
  __syncthreads();
  Row rows[Together];
  Held<T, N> held[Together][Each];
  const T none = convert<T>::from(lowest<compute_t<T>>());
  const auto place_of = [&](int r) { return (r * groups + static_cast<int>(threadIdx.x) / lanes) * size; };
#pragma unroll
  for (int r = 0; r < Together; ++r) {
    rows[r] = own_row(work.row, Together, r);
    const T *const row = staged + by_in + place_of(r);
    const int end = rows[r].present ? size : 0;
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      const int i = (k * lanes + rows[r].lane) * N;
      Pack<T, N> pack;
      for (int j = 0; j < N; ++j) pack.v[j] = i + j < end ? row[i + j] : none;
      held[r][k].keep(pack);
    }
  }
  __syncthreads();  // nobody reads the input any more
  softmax_packs<T, false>(held, rows, work, [&](int r, int k, const Pack<T, N> &pack) {
    const int i = (k * lanes + rows[r].lane) * N, end = rows[r].present ? size : 0;
    T *const row = staged + by_out + place_of(r);
    for (int j = 0; j < N; ++j) {
      if (i + j < end) row[i + j] = pack.v[j];
    }
  });
  __syncthreads();
  each_pack(
      by_out, [&](int i) { store_pack<N>(to + (i - by_out), load_pack<N>(staged + i)); },
      [&](int i) { to[i - by_out] = staged[i]; });
}

// Rows that are too long to be held, in parts of `chunk` elements, a block each: first the largest element and the sum
// of every part, then the result, for which each block puts its row's parts together, all in one order.
struct LongPart {
  long long row, part, begin, end;
};

__device__ __forceinline__ LongPart own_part(const SoftmaxWork &work) {
  const long long row = static_cast<long long>(blockIdx.x) / work.chunks;
  const long long part = blockIdx.x - row * work.chunks, begin = part * work.chunk;
  const long long end = begin + work.chunk < work.row.size ? begin + work.chunk : work.row.size;
  return {row, part, begin, end};
}

constexpr int kUnderWay = 4;  // packs of a thread

template <class T, bool Dense>
__global__ void __launch_bounds__(kLongRow)
    softmax_parts(const T *in, Exponentials<compute_t<T>> *parts, const __grid_constant__ SoftmaxWork work) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  const LogSumExp<T, A, T> op{};
  const LongPart own = own_part(work);
  long long at[2];
  place(work.row.kept, own.row, at);
  const T none = convert<T>::from(lowest<A>());
  Exponentials<A> all = op.identity();
#pragma unroll 1
  for (long long first = own.begin; first < own.end; first += kUnderWay * kLongRow * N) {
    Held<T, N> held[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const long long i = first + (u * kLongRow + static_cast<int>(threadIdx.x)) * N;
      if (i < own.end) held[u].keep(read<Dense>(in + at[0], work.row, i, none));
    }
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const long long i = first + (u * kLongRow + static_cast<int>(threadIdx.x)) * N;
      if (i < own.end) all = op.combine(all, op.batch(held[u].pack().v, i, 1));
    }
  }
  all = fold(op, all, kLongRow);
  if (threadIdx.x == 0) parts[own.row * work.chunks + own.part] = all;
}

template <class T, bool Dense>
__global__ void __launch_bounds__(kLongRow) softmax_apply(const T *in, T *out, const Exponentials<compute_t<T>> *parts,
                                                          const __grid_constant__ SoftmaxWork work) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  const LogSumExp<T, A, T> op{};
  const LongPart own = own_part(work);
  long long at[2];
  place(work.row.kept, own.row, at);
  const T *from = in + at[0];
  T *to = out + at[1];
  const T none = convert<T>::from(lowest<A>());
  Exponentials<A> all = op.identity();
  for (long long k = threadIdx.x; k < work.chunks; k += kLongRow) {
    all = op.combine(all, parts[own.row * work.chunks + k]);
  }
  all = fold(op, all, kLongRow);
  __shared__ Exponentials<A> shared;
  if (threadIdx.x == 0) shared = settled(all);
  __syncthreads();
  all = shared;
  const A logarithm = log(all.sum);
#pragma unroll 1
  for (long long first = own.begin; first < own.end; first += kUnderWay * kLongRow * N) {
    Held<T, N> held[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const long long i = first + (u * kLongRow + static_cast<int>(threadIdx.x)) * N;
      held[u].keep(read_again<Dense>(from, to, work.row, i, none));
    }
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const long long i = first + (u * kLongRow + static_cast<int>(threadIdx.x)) * N;
      Pack<T, N> pack = held[u].pack();
      for (int j = 0; j < N; ++j) pack.v[j] = softmax_of(pack.v[j], all, logarithm, work.log);
      write<Dense>(to, work.row, i, own.end, pack);
    }
  }
}

}  // namespace pk
