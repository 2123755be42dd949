// across.cu: softmax and log_softmax of rows that lie side by side: a thread for an element of so many neighbouring
// rows.
//
// `height` threads share a row. Short rows are held in registers. Of longer ones each chunk gives its largest element
// and its sum, which a second launch puts together, and a third makes the results. Height and chunks follow from a
// row's length alone, so its bits do too.
#include "exponentials.cuh"

namespace pk {

constexpr int kAcross = 256;    // threads of a block
constexpr int kHeldOfRow = 16;  // elements of a short row that a thread holds

struct AcrossWork {
  RowWork row;  // lanes: neighbouring rows of a group of threads
  long long log;
  long long height;
  long long chunk, chunks;  // elements of a row in one part, parts of a row
};

// A group of lanes x height threads has some neighbouring rows, of which this thread's is `column`, and one chunk.
struct OwnPart {
  int y, height;
  long long outer, column, begin, end;
  bool present;
};

__device__ __forceinline__ OwnPart own_column(const AcrossWork &work, long long block, long long chunks) {
  const int lanes = static_cast<int>(work.row.lanes), height = static_cast<int>(work.height);
  const int x = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int group = static_cast<int>(threadIdx.x) / (lanes * height), groups = kAcross / (lanes * height);
  const unsigned unit = static_cast<unsigned>(block * groups + group);
  const unsigned tiles = static_cast<unsigned>((work.row.columns + lanes - 1) / lanes);
  const unsigned above = unit / tiles, many = static_cast<unsigned>(chunks);
  const unsigned outer = above / many, chunk = above - outer * many;
  OwnPart own;
  own.y = static_cast<int>(threadIdx.x) / lanes & (height - 1);
  own.height = height;
  own.outer = outer;
  own.column = static_cast<long long>(unit - above * tiles) * lanes + x;
  own.present = outer < work.row.kept.size && own.column < work.row.columns;
  own.begin = chunk * work.chunk + own.y;
  own.end = (chunk + 1) * work.chunk < work.row.size ? (chunk + 1) * work.chunk : work.row.size;
  if (!own.present) own.end = 0;
  return own;
}

// Over the threads of a row: every one gets the result. parts: of a block.
template <class Op, class V>
__device__ __forceinline__ V over_height(const Op &combine, V value, const AcrossWork &work, int y, V *parts) {
  const int lanes = static_cast<int>(work.row.lanes);
  if (work.height == 1) return value;
  __syncthreads();
  parts[threadIdx.x] = value;
  for (int distance = static_cast<int>(work.height) / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (y < distance) parts[threadIdx.x] = combine(parts[threadIdx.x], parts[threadIdx.x + distance * lanes]);
  }
  __syncthreads();
  return parts[threadIdx.x - y * lanes];
}

template <class T, int Count, class Index>
__device__ __forceinline__ void read_down(T (&values)[Count], const T *from, Index i, Index end, int height,
                                          long long step) {
  const T none = convert<T>::from(lowest<compute_t<T>>());
#pragma unroll
  for (int u = 0; u < Count; ++u) values[u] = i + u * height < end ? from[(i + u * height) * step] : none;
}

template <class T>
__global__ void __launch_bounds__(kAcross)
    softmax_across(const T *in, T *out, const __grid_constant__ AcrossWork work) {
  using A = compute_t<T>;
  __shared__ A parts[kAcross];
  const OwnPart own = own_column(work, blockIdx.x, 1);
  long long at[2] = {0, 0};
  if (own.present) place(work.row.kept, own.outer, at);
  T values[kHeldOfRow];
  const int begin = own.y, end = own.present ? static_cast<int>(work.row.size) : 0;
  read_down(values, in + at[0] + own.column * work.row.column_step, begin, end, own.height, work.row.step);
  A top = widen(values[0]);
#pragma unroll
  for (int u = 1; u < kHeldOfRow; ++u) top = Larger()(top, widen(values[u]));
  top = over_height(Larger(), top, work, own.y, parts);
  A exponentials[kHeldOfRow], sum = 0;
#pragma unroll
  for (int u = 0; u < kHeldOfRow; ++u) {
    exponentials[u] = exponential_of<T>(widen(values[u]) - top);
    if (begin + u * own.height < end) sum += exponentials[u];
  }
  sum = over_height(Plus(), sum, work, own.y, parts);
  const A inverse = A(1) / sum, logarithm = work.log ? log(sum) : A(0);
  T *to = out + at[1] + own.column * work.row.column_out_step;
#pragma unroll
  for (int u = 0; u < kHeldOfRow; ++u) {
    const int i = begin + u * own.height;
    const A result = work.log ? widen(values[u]) - top - logarithm : share<T>(exponentials[u], sum, inverse);
    if (i < end) to[i * work.row.out_step] = convert<T>::from(result);
  }
}

template <class T>
__device__ constexpr int under_way() {
  return sizeof(T) > 2 ? 8 : 16;
}

// states: of every chunk of all rows, then of the next.
template <class T>
__global__ void __launch_bounds__(kAcross)
    softmax_across_parts(const T *in, Exponentials<compute_t<T>> *states, const __grid_constant__ AcrossWork work) {
  using A = compute_t<T>;
  constexpr int Loads = under_way<T>();
  const LogSumExp<T, A, T> op{};
  const auto combine = [&](const Exponentials<A> &a, const Exponentials<A> &b) { return op.combine(a, b); };
  __shared__ Exponentials<A> parts[kAcross];
  const OwnPart own = own_column(work, blockIdx.x, work.chunks);
  long long at[2] = {0, 0};
  if (own.present) place(work.row.kept, own.outer, at);
  const T *from = in + at[0] + own.column * work.row.column_step;
  Exponentials<A> all = op.identity();
#pragma unroll 1
  for (long long i = own.begin; i < own.end; i += Loads * own.height) {
    T values[Loads];
    read_down(values, from, i, own.end, own.height, work.row.step);
    A top = widen(values[0]), sum = 0;
#pragma unroll
    for (int u = 1; u < Loads; ++u) top = Larger()(top, widen(values[u]));
#pragma unroll
    for (int u = 0; u < Loads; ++u) sum += exponential_of<T>(widen(values[u]) - reference(top));
    all = op.combine(all, {top, sum});
  }
  all = over_height(combine, all, work, own.y, parts);
  if (own.y == 0 && own.present) {
    const long long row = own.outer * work.row.columns + own.column;
    states[own.begin / work.chunk * work.row.kept.size * work.row.columns + row] = all;
  }
}

// Of all chunks of a row, by the threads that share it.
template <class A>
__global__ void __launch_bounds__(kAcross) softmax_across_merge(const Exponentials<A> *states, Exponentials<A> *totals,
                                                                const __grid_constant__ AcrossWork work) {
  constexpr int Loads = 4;
  const LogSumExp<A, A, A> op{};
  const auto combine = [&](const Exponentials<A> &a, const Exponentials<A> &b) { return op.combine(a, b); };
  __shared__ Exponentials<A> parts[kAcross];
  const OwnPart own = own_column(work, blockIdx.x, 1);
  const long long rows = work.row.kept.size * work.row.columns, row = own.outer * work.row.columns + own.column;
  Exponentials<A> all = op.identity();
#pragma unroll 1
  for (long long k = own.y; own.present && k < work.chunks; k += Loads * own.height) {
    Exponentials<A> values[Loads];
#pragma unroll
    for (int u = 0; u < Loads; ++u) {
      values[u] = k + u * own.height < work.chunks ? states[(k + u * own.height) * rows + row] : op.identity();
    }
#pragma unroll
    for (int u = 0; u < Loads; ++u) all = op.combine(all, values[u]);
  }
  all = over_height(combine, all, work, own.y, parts);
  if (own.y == 0 && own.present) totals[row] = settled(all);
}

// The last blocks go first: what was read last may still be in the cache.
template <class T>
__global__ void __launch_bounds__(kAcross)
    softmax_across_apply(const T *in, T *out, const Exponentials<compute_t<T>> *totals,
                         const __grid_constant__ AcrossWork work) {
  using A = compute_t<T>;
  constexpr int Loads = under_way<T>();
  const OwnPart own = own_column(work, gridDim.x - 1 - blockIdx.x, work.chunks);
  if (!own.present) return;
  long long at[2];
  place(work.row.kept, own.outer, at);
  const T *from = in + at[0] + own.column * work.row.column_step;
  T *to = out + at[1] + own.column * work.row.column_out_step;
  const Exponentials<A> all = totals[own.outer * work.row.columns + own.column];
  const A inverse = A(1) / all.sum, logarithm = work.log ? log(all.sum) : A(0);
#pragma unroll 1
  for (long long i = own.begin; i < own.end; i += Loads * own.height) {
    T values[Loads];
    read_down(values, from, i, own.end, own.height, work.row.step);
#pragma unroll
    for (int u = 0; u < Loads; ++u) {
      const A distance = widen(values[u]) - all.top;
      const A result = work.log ? distance - logarithm : share<T>(exponential_of<T>(distance), all.sum, inverse);
      if (i + u * own.height < own.end) to[(i + u * own.height) * work.row.out_step] = convert<T>::from(result);
    }
  }
}

}  // namespace pk
