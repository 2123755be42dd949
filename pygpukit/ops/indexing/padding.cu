// padding.cu: padding and rolling: every axis is shifted, and continued past its ends.
#include "numeric.cuh"
#include "span.cuh"

namespace pk {

enum Continuation : long long { kConstant = 0, kEdge = 1, kReflect = 2, kSymmetric = 3, kPeriodic = 4 };

template <class T>
struct Remap {
  long long size, ndim, start, continuation;  // an axis at least
  long long span;                             // elements from the pointer on that are the array's, between its rows too
  long long shape[kMaxDims];                  // of the result
  long long extent[kMaxDims];                 // of the array
  long long stride[kMaxDims];                 // of the array, elements
  long long before[kMaxDims];
  T fill[kMaxDims][2];  // before and after each axis
};

// The position in [0, n) that stands for position i of an axis continued on both sides.
__device__ __forceinline__ long long continued(long long i, long long n, long long continuation) {
  if (i >= 0 && i < n) return i;
  if (continuation == kEdge || n == 1) return i < 0 ? 0 : n - 1;
  const long long period = continuation == kPeriodic ? n : continuation == kReflect ? 2 * (n - 1) : 2 * n;
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i - (continuation == kSymmetric ? 1 : 0);
}

// A row of the result: all of one number, or where in the array the row begins that it is made of.
template <class T>
struct MappedRow {
  long long at;
  T number;
  bool filled;
};

template <class Index, class T>
__device__ __forceinline__ MappedRow<T> mapped_row(const Remap<T> &map, Index row) {
  MappedRow<T> source_row{map.start, T{}, false};
  for (long long axis = map.ndim - 2; axis >= 0; --axis) {
    const Index extent = static_cast<Index>(map.shape[axis]);
    const Index above = axis ? row / extent : 0;
    const long long n = map.extent[axis];
    const long long here = static_cast<long long>(row - above * extent) - map.before[axis];
    if (map.continuation == kConstant && (here < 0 || here >= n)) {
      source_row.number = map.fill[axis][here < 0 ? 0 : 1];
      source_row.filled = true;
      return source_row;
    }
    source_row.at += continued(here, n, map.continuation) * map.stride[axis];
    row = above;
  }
  return source_row;
}

// Elements first to first + count, N or fewer, of the result. Index is 32 bits wide where that is enough: division is
// cheaper.
template <int N, class Index, class T>
__device__ __forceinline__ Pack<T, N> mapped(const T *array, const Remap<T> &map, Index first, int count) {
  const long long axis = map.ndim - 1, width = map.shape[axis], n = map.extent[axis], step = map.stride[axis];
  Index row = first / static_cast<Index>(width);
  long long here = static_cast<long long>(first - row * static_cast<Index>(width)) - map.before[axis];
  MappedRow<T> own = mapped_row<Index>(map, row);
  const T *from = array + own.at + here;
  const bool in_row = here >= 0 && here + N <= n && here + map.before[axis] + N <= width;
  if (!own.filled && count == N && in_row && step == 1 && Span<T>{array, array + map.span}.template holds<N>(from)) {
    Across<T, N> coming;
    coming.load(from);
    return coming.arrived().pack();
  }
  Pack<T, N> pack{};
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    T value = own.number;
    if (map.continuation == kConstant && (here < 0 || here >= n)) {
      value = map.fill[axis][here < 0 ? 0 : 1];
    } else if (!own.filled) {
      value = array[own.at + continued(here, n, map.continuation) * step];
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j == k) pack.v[j] = value;
    }
    if (++here + map.before[axis] == width && k + 1 < count) {
      here = -map.before[axis];
      own = mapped_row<Index>(map, ++row);
    }
  }
  return pack;
}

// A thread makes 16 bytes of neighbours.
template <class T>
__global__ void __launch_bounds__(256) remap(const T *array, T *out, const __grid_constant__ Remap<T> map) {
  constexpr int N = per_load<T>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i >= map.size) return;
  const int count = map.size - i < N ? static_cast<int>(map.size - i) : N;
  const Pack<T, N> pack = map.size <= 0x7fffffffLL ? mapped<N>(array, map, static_cast<unsigned>(i), count)
                                                   : mapped<N>(array, map, static_cast<unsigned long long>(i), count);
  if (count == N) {
    store_pack<N>(out + i, pack);
  } else {
    for (int k = 0; k < N; ++k) {
      if (k < count) out[i + k] = pack.v[k];
    }
  }
}

// Elements first, first + 256 and so on, of rows that are so short that most packs would reach across their ends.
template <int N, class Index, class T>
__device__ __forceinline__ void remap_apart(const T *array, T *out, const Remap<T> &map, Index first) {
  const long long axis = map.ndim - 1, n = map.extent[axis];
  const Index width = static_cast<Index>(map.shape[axis]), down = 256 / width, along = 256 - down * width;
  Index row = first / width;
  long long here = static_cast<long long>(first - row * width);
  T values[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (first + k * 256 < map.size) {
      const long long at = here - map.before[axis];
      const MappedRow<T> own = mapped_row<Index>(map, row);
      values[k] = own.number;
      if (map.continuation == kConstant && (at < 0 || at >= n)) {
        values[k] = map.fill[axis][at < 0 ? 0 : 1];
      } else if (!own.filled) {
        values[k] = array[own.at + continued(at, n, map.continuation) * map.stride[axis]];
      }
    }
    row += down;
    here += along;
    if (here >= static_cast<long long>(width)) {
      here -= width;
      ++row;
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (first + k * 256 < map.size) out[first + k * 256] = values[k];
  }
}

template <class T>
__global__ void __launch_bounds__(256) remap_short(const T *array, T *out, const __grid_constant__ Remap<T> map) {
  constexpr int N = 4;
  const long long first = static_cast<long long>(blockIdx.x) * (256 * N) + threadIdx.x;
  if (map.size <= 0x7fffffffLL - 256 * N) {
    remap_apart<N>(array, out, map, static_cast<unsigned>(first));
  } else {
    remap_apart<N>(array, out, map, static_cast<unsigned long long>(first));
  }
}

}  // namespace pk
