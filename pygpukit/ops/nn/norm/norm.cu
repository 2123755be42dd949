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
  const W *scale, *shift;      // of the row's first element
  long long per_weight, size;  // size: elements of the row
  bool scaled, shifted;
  bool near;  // each element has its own, and packs of them lie at 16 bytes

  // A weight that is not there is not read.
  __device__ __forceinline__ void read(long long weight, A &factor, A &term) const {
    factor = scaled ? A(widen(scale[weight])) : A(1);
    term = shifted ? A(widen(shift[weight])) : A(0);
  }
  __device__ __forceinline__ A apply(A value, A factor, A term) const {
    if (shifted) return scaled ? fma(value, factor, term) : value + term;
    return scaled ? value * factor : value;
  }
};

template <class A, class W>
__device__ __forceinline__ Weights<A, W> weights_of(const NormWork &work, const Row &row, const W *scale,
                                                    const W *shift) {
  const long long first = work.rows == 1 ? 0 : row.index % work.rows * (work.row.size / work.per_weight);
  const bool near = work.per_weight == 1 && (!work.scaled || phase<per_load<W>()>(scale + first) == 0) &&
                    (!work.shifted || phase<per_load<W>()>(shift + first) == 0);
  return {scale + first, shift + first, work.per_weight, work.row.size, work.scaled != 0, work.shifted != 0, near};
}

// Weights of N neighbours, up to 16 bytes at a time.
template <class W, class A, int N>
__device__ __forceinline__ void read_weights(const W *from, A (&values)[N]) {
  constexpr int M = N < per_load<W>() ? N : per_load<W>();
#pragma unroll
  for (int part = 0; part < N / M; ++part) {
    compute_t<W> some[M];
    widen_pack(load_pack<M>(from + part * M), some);
    for (int j = 0; j < M; ++j) values[part * M + j] = some[j];
  }
}

// Squares of large values overflow where their root would not. Rows in which they did are summed again with their
// values made smaller by a power of two, which costs no digit. The squares of float16 fit.
template <class A>
struct Smaller;
template <>
struct Smaller<float> {
  static constexpr float by = 0x1p-80f, largest_finite = 0x1.fffffep127f;
};
template <>
struct Smaller<double> {
  static constexpr double by = 0x1p-560, largest_finite = 0x1.fffffffffffffp1023;
};
template <class T>
constexpr bool kOverflows = true;
template <>
constexpr bool kOverflows<half_t> = false;

// Whether any row of those that fold together has infinite squares: of a warp, or of a block where rows are longer.
__device__ __forceinline__ bool any_of_rows(bool infinite, int lanes) {
  return lanes <= 32 ? __any_sync(~0u, infinite) : __syncthreads_or(infinite);
}

template <class A>
__device__ __forceinline__ A inverse_root(A square, A divisor, double epsilon, A by) {
  return by / sqrt(square / divisor + static_cast<A>(epsilon * by * by));
}

// How weights lie beside elements, which the host knows: as many to one as there are neighbours, a scale and perhaps a
// shift; or, shared, any number of elements to one, either of them or none.
enum WeightForm { kShared, kScale, kBoth };

// The weights beside N elements from number i on.
template <WeightForm Form, bool Dense, class A, class W, int N>
struct Beside {
  A scale[N], shift[N], factor, term;
  __device__ __forceinline__ void read(const Weights<A, W> &weights, long long i) {
    if constexpr (Form != kShared) read_weights(weights.scale + i, scale);
    if constexpr (Form == kBoth) read_weights(weights.shift + i, shift);
    if constexpr (Form == kShared && Dense) weights.read(i / weights.per_weight, factor, term);
    if constexpr (Form == kShared && !Dense) {
      if (weights.near && i + N <= weights.size) {
        if (weights.scaled) read_weights(weights.scale + i, scale);
        if (weights.shifted) read_weights(weights.shift + i, shift);
        return;
      }
      for (int j = 0; j < N; ++j) {
        const long long at = i + j < weights.size ? i + j : weights.size - 1;
        weights.read(weights.per_weight == 1 ? at : at / weights.per_weight, scale[j], shift[j]);
      }
    }
  }
};

// N results of distances from the mean.
template <WeightForm Form, bool Dense, class T, class W, class A, int N>
__device__ __forceinline__ Pack<T, N> weighted(A (&values)[N], A inverse, Beside<Form, Dense, A, W, N> &beside,
                                               const Weights<A, W> &weights) {
  for (int j = 0; j < N; ++j) values[j] *= inverse;
  if constexpr (Form == kShared && Dense) {
    for (int j = 0; j < N; ++j) values[j] = weights.apply(values[j], beside.factor, beside.term);
  } else if (Form == kBoth || (Form == kShared && weights.scaled && weights.shifted)) {
    for (int j = 0; j < N; ++j) values[j] = fma(values[j], beside.scale[j], beside.shift[j]);
  } else if (Form == kScale || weights.scaled) {
    for (int j = 0; j < N; ++j) values[j] *= beside.scale[j];
  } else if (weights.shifted) {
    for (int j = 0; j < N; ++j) values[j] += beside.shift[j];
  }
  return narrow_pack<T, N>(values);
}

template <WeightForm Form, bool Dense, class T, class W, class A, class H, int Together, int Each>
__device__ __forceinline__ void write_held(T *out, const NormWork &work, const Row (&rows)[Together],
                                           H (&held)[Together][Each], const A (&mean)[Together],
                                           const A (&inverse)[Together], const Weights<A, W> &weights) {
  constexpr int N = per_load<T>();
  const int size = static_cast<int>(work.row.size);
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    if (!Dense && k * static_cast<int>(work.row.lanes) * N >= size) break;
    const int i = (k * static_cast<int>(work.row.lanes) + rows[0].lane) * N;
    Beside<Form, Dense, A, W, N> beside;
#pragma unroll
    for (int r = 0; r < Together; ++r) {
      // Past the end, too, so that no branch keeps the loads of weights from being under way together.
      const int at = i < size ? i : 0;
      if (r == 0) beside.read(weights, at);
      A values[N];
      held[r][k].again();
      widen_pack(held[r][k].pack(), values);
      for (int j = 0; j < N; ++j) values[j] -= mean[r];
      const Pack<T, N> pack = weighted<Form, Dense, T>(values, inverse[r], beside, weights);
      write<Dense>(out + rows[r].out, work.row, i, rows[r].present ? size : 0, pack);
    }
  }
}

template <WeightForm Form, bool Dense, class T, class W, class A>
__device__ __forceinline__ void write_long(const T *from, T *to, const RowWork &work, int lane, A mean, A inverse,
                                           const Weights<A, W> &weights) {
  constexpr int N = per_load<T>();
  for (long long first = 0; first < work.size; first += kLongRow * N) {
    const long long i = first + lane * N, at = i < work.size ? i : 0;
    A values[N];
    widen_pack(read_again<Dense>(from, to, work, i, convert<T>::from(0.0f)), values);
    for (int j = 0; j < N; ++j) values[j] -= mean;
    Beside<Form, Dense, A, W, N> beside;
    beside.read(weights, at);
    write<Dense>(to, work, i, work.size, weighted<Form, Dense, T>(values, inverse, beside, weights));
  }
}

// A group of threads has one, two or, where they are short, four rows: these share every wait, and every weight that is
// read, and so need the same.
template <class T, class W, bool Dense, int Threads, int Together, WeightForm Form>
__global__ void __launch_bounds__(Threads, min_blocks<Threads>(7))
    norm_rows(const T *in, const W *scale, const W *shift, T *out, const __grid_constant__ NormWork work) {
  using A = compute_t<T>;
  constexpr int N = per_load<T>();
  constexpr int Each = packs_held(Together);
  __shared__ A sums[32][Together], squares[32][Together];
  const int lanes = static_cast<int>(work.row.lanes);
  const int size = static_cast<int>(work.row.size);
  const A divisor = static_cast<A>(size);
  Row rows[Together];
  Held<T, N> held[Together][Each];
#pragma unroll
  for (int r = 0; r < Together; ++r) {
    rows[r] = own_row(work.row, Together, r);
    read_row<Dense>(in, work.row, rows[r], convert<T>::from(0.0f), held[r]);
  }
  A mean[Together] = {}, square[Together] = {}, inverse[Together];
  if (work.center) {
#pragma unroll
    for (int r = 0; r < Together; ++r) {
#pragma unroll
      for (int k = 0; k < Each; ++k) {
        A values[N], part = 0;
        widen_pack(held[r][k].pack(), values);
        for (int j = 0; j < N; ++j) part += values[j];
        mean[r] += part;
      }
    }
    all_fold(Plus(), mean, lanes, sums);
    for (int r = 0; r < Together; ++r) mean[r] /= divisor;
  }
  const auto sum_squares = [&](A by, A(&square)[Together]) {
#pragma unroll
    for (int r = 0; r < Together; ++r) {
#pragma unroll
      for (int k = 0; k < Each; ++k) {
        const int i = (k * lanes + rows[r].lane) * N;
        A values[N], part = 0;
        held[r][k].again();
        widen_pack(held[r][k].pack(), values);
        for (int j = 0; j < N; ++j) values[j] = (values[j] - mean[r]) * by;
        if (!Dense && i + N > size) {
          for (int j = 0; j < N; ++j) values[j] = i + j < size ? values[j] : A(0);
        }
        for (int j = 0; j < N; ++j) part = fma(values[j], values[j], part);
        if (i < size) square[r] += part;
      }
    }
    all_fold(Plus(), square, lanes, squares);
  };
  sum_squares(A(1), square);
  bool infinite = false;
  for (int r = 0; r < Together; ++r) {
    inverse[r] = inverse_root(square[r], divisor, work.epsilon, A(1));
    infinite |= square[r] > Smaller<A>::largest_finite;
  }
  if (kOverflows<T> && any_of_rows(infinite, lanes)) {
    A smaller[Together] = {};
    sum_squares(Smaller<A>::by, smaller);
    for (int r = 0; r < Together; ++r) {
      if (square[r] > Smaller<A>::largest_finite)
        inverse[r] = inverse_root(smaller[r], divisor, work.epsilon, Smaller<A>::by);
    }
  }
  const Weights<A, W> weights = weights_of<A>(work, rows[0], scale, shift);
  write_held<Form, Dense>(out, work, rows, held, mean, inverse, weights);
}

// Rows read once for the mean, once for the variance, once for the result.
template <class T, class W, bool Dense, WeightForm Form>
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
  const auto sum_squares = [&](A by) {
    A square = 0;
    for (long long i = row.lane * N; i < size; i += kLongRow * N) {
      const Pack<T, N> pack = read<Dense>(from, work.row, i, zero);
      A part = 0;
      for (int j = 0; j < N; ++j) {
        const A distance = (widen(pack.v[j]) - mean) * by;
        if (Dense || i + j < size) part = fma(distance, distance, part);
      }
      square += part;
    }
    return all_fold(Plus(), square, kLongRow, squares);
  };
  const A square = sum_squares(A(1)), divisor = static_cast<A>(size);
  A inverse = inverse_root(square, divisor, work.epsilon, A(1));
  if (kOverflows<T> && any_of_rows(square > Smaller<A>::largest_finite, kLongRow)) {
    inverse = inverse_root(sum_squares(Smaller<A>::by), divisor, work.epsilon, Smaller<A>::by);
  }
  const Weights<A, W> weights = weights_of<A>(work, row, scale, shift);
  write_long<Form, Dense>(from, to, work.row, row.lane, mean, inverse, weights);
}

}  // namespace pk
