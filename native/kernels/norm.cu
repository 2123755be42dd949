// norm.cu: layer, root-mean-square and group normalisation of rows kept in registers, and of longer rows.
//
// The variance is that of the distances from the mean. W: the type of the weights, T's own or float.
#include "row_work.cuh"

namespace pk {

struct NormWork {
  RowWork row;
  long long center;      // 0: root mean square
  long long scaled;      // 1: there is a weight
  long long shifted;     // 1: there is a bias
  long long per_weight;  // elements in a row that share a weight
  long long rows;        // rows after which the weights begin again
  double epsilon;
};

template <class A, class W>
struct Weights {
  const W *scale, *shift;
  long long first, per_weight, size;  // size: elements of the row
  bool scaled, shifted;

  __device__ __forceinline__ A apply(A value, long long weight) const {
    if (scaled) value *= widen(scale[weight]);
    if (shifted) value += widen(shift[weight]);
    return value;
  }
};

template <class A, class W>
__device__ __forceinline__ Weights<A, W> weights_of(const NormWork &work, const Row &row, const W *scale, const W *shift) {
  const long long weights = work.row.size / work.per_weight;
  const long long first = work.rows == 1 ? 0 : row.index % work.rows * weights;
  return {scale, shift, first, work.per_weight, work.row.size, work.scaled != 0, work.shifted != 0};
}

// N results from element i on. Dense: weights of 16 bytes at a time, or one for all N.
template <bool Dense, class T, class W, class A>
__device__ __forceinline__ Pack<T, per_load<T>()> normalised(const A (&values)[per_load<T>()], A mean, A inverse,
                                                             const Weights<A, W> &weights, long long i) {
  constexpr int N = per_load<T>();
  constexpr int M = N < per_load<W>() ? N : per_load<W>();
  Pack<T, N> pack;
  if (Dense && weights.per_weight == 1) {
    A results[N];
    for (int j = 0; j < N; ++j) results[j] = (values[j] - mean) * inverse;
    if (weights.scaled) {
      for (int part = 0; part < N / M; ++part) {
        const Pack<W, M> scale = load_pack<M>(weights.scale + weights.first + i + part * M);
        for (int j = 0; j < M; ++j) results[part * M + j] *= widen(scale.v[j]);
      }
    }
    if (weights.shifted) {
      for (int part = 0; part < N / M; ++part) {
        const Pack<W, M> shift = load_pack<M>(weights.shift + weights.first + i + part * M);
        for (int j = 0; j < M; ++j) results[part * M + j] += widen(shift.v[j]);
      }
    }
    for (int j = 0; j < N; ++j) pack.v[j] = convert<T>::from(results[j]);
  } else if (Dense) {
    const long long weight = weights.first + i / weights.per_weight;
    for (int j = 0; j < N; ++j) pack.v[j] = convert<T>::from(weights.apply((values[j] - mean) * inverse, weight));
  } else {
    for (int j = 0; j < N; ++j) {
      if (i + j >= weights.size) continue;
      const long long weight = weights.first + (weights.per_weight == 1 ? i + j : (i + j) / weights.per_weight);
      pack.v[j] = convert<T>::from(weights.apply((values[j] - mean) * inverse, weight));
    }
  }
  return pack;
}

template <class T, class W, bool Dense, int Threads>
__global__ void __launch_bounds__(Threads, least_blocks<Threads>(sizeof(T) == 2 ? 4 : 5))
    norm_rows(const T *in, const W *scale, const W *shift, T *out, const __grid_constant__ NormWork work) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  __shared__ A sums[32], squares[32];
  const Row row = own_row(work.row);
  const int lanes = static_cast<int>(work.row.lanes);
  const long long size = row.present ? work.row.size : 0;
  const T *from = in + row.in;
  T *to = out + row.out;
  const T zero = convert<T>::from(0.0f);
  Pack<T, N> packs[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const long long i = static_cast<long long>(k * lanes + row.lane) * N;
    if (i < size) {
      packs[k] = read<Dense>(from, work.row, i, zero);
    } else {
      for (int j = 0; j < N; ++j) packs[k].v[j] = zero;
    }
  }
  A mean = 0;
  if (work.center) {
    A sum = 0;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      A part = 0;
      for (int j = 0; j < N; ++j) part += widen(packs[k].v[j]);
      sum += part;
    }
    mean = all_fold(Plus(), sum, lanes, sums) / static_cast<A>(work.row.size);
  }
  A square = 0;
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const long long i = static_cast<long long>(k * lanes + row.lane) * N;
    A part = 0;
    for (int j = 0; j < N; ++j) {
      const A distance = widen(packs[k].v[j]) - mean;
      part += Dense || i + j < size ? distance * distance : A(0);
    }
    if (i < size) square += part;
  }
  const A variance = all_fold(Plus(), square, lanes, squares) / static_cast<A>(work.row.size);
  const A inverse = A(1) / sqrt(variance + static_cast<A>(work.epsilon));
  const Weights<A, W> weights = weights_of<A>(work, row, scale, shift);
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const long long i = static_cast<long long>(k * lanes + row.lane) * N;
    if (i >= size) continue;
    A values[N];
    for (int j = 0; j < N; ++j) values[j] = widen(packs[k].v[j]);
    write<Dense>(to, work.row, i, normalised<Dense, T>(values, mean, inverse, weights, i));
  }
}

// Rows read once for the mean, once for the variance, once for the result.
template <class T, class W, bool Dense>
__global__ void __launch_bounds__(kLongRow)
    norm_long(const T *in, const W *scale, const W *shift, T *out, const __grid_constant__ NormWork work) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  __shared__ A sums[32], squares[32];
  const Row row = own_row(work.row);
  const long long size = work.row.size;
  const T *from = in + row.in;
  T *to = out + row.out;
  const T zero = convert<T>::from(0.0f);
  A mean = 0;
  if (work.center) {
    A sum = 0;
    for (long long i = row.lane * N; i < size; i += kLongRow * N) {
      const Pack<T, N> pack = read<Dense>(from, work.row, i, zero);
      A part = 0;
      for (int j = 0; j < N; ++j) part += widen(pack.v[j]);
      sum += part;
    }
    mean = all_fold(Plus(), sum, kLongRow, sums) / static_cast<A>(size);
  }
  A square = 0;
  for (long long i = row.lane * N; i < size; i += kLongRow * N) {
    const Pack<T, N> pack = read<Dense>(from, work.row, i, zero);
    A part = 0;
    for (int j = 0; j < N; ++j) {
      const A distance = widen(pack.v[j]) - mean;
      part += Dense || i + j < size ? distance * distance : A(0);
    }
    square += part;
  }
  const A variance = all_fold(Plus(), square, kLongRow, squares) / static_cast<A>(size);
  const A inverse = A(1) / sqrt(variance + static_cast<A>(work.epsilon));
  const Weights<A, W> weights = weights_of<A>(work, row, scale, shift);
  for (long long i = row.lane * N; i < size; i += kLongRow * N) {
    const Pack<T, N> pack = read<Dense>(from, work.row, i, zero);
    A values[N];
    for (int j = 0; j < N; ++j) values[j] = widen(pack.v[j]);
    write<Dense>(to, work.row, i, normalised<Dense, T>(values, mean, inverse, weights, i));
  }
}

}  // namespace pk
