// gather.cu: moving elements to and from computed places: index arrays, masked stores, padding, rolling, triangles.
#include "numeric.cuh"
#include "report.cuh"
#include "span.cuh"

namespace pk {

// ---- indices ----

enum Mode : long long { kRaise = 0, kWrap = 1, kClip = 2, kOffsets = 3 };

// Instead of an offset: nothing is moved. One 4-byte pattern, so that a table of them is one fill.
constexpr long long kSkip = static_cast<long long>(0x8080808080808080ull);

// What the values of an index array mean: they count through some axes in C order, or are offsets already.
struct Target {
  long long mode;
  long long size;  // product of the extents
  long long axis;  // for the report
  long long ndim;
  long long shape[kMaxDims];
  long long stride[kMaxDims];  // bytes
};

// Bytes from the first element to the one that an index value means; false when there is none.
__device__ __forceinline__ bool place(long long value, const Target &target, long long *report, long long &offset) {
  if (target.mode == kOffsets) {
    offset = value;
    return value != kSkip;
  }
  const long long size = target.size;
  if (target.mode == kRaise) {
    if (value < -size || value >= size) {
      report_index(report, value, target.axis, size);
      return false;
    }
    if (value < 0) value += size;
  } else if (target.mode == kWrap) {
    value %= size;
    if (value < 0) value += size;
  } else {
    value = value < 0 ? 0 : value >= size ? size - 1 : value;
  }
  if (target.ndim == 1) {
    offset = value * target.stride[0];
    return true;
  }
  offset = 0;
  for (long long axis = target.ndim - 1; axis >= 0; --axis) {
    const long long above = value / target.shape[axis];
    offset += (value - above * target.shape[axis]) * target.stride[axis];
    value = above;
  }
  return true;
}

// Offsets of several index arrays together: each launch adds one array's share, the first also the layout's own
// (operand 0, bytes). A share that does not exist makes the whole offset kSkip.
template <class I>
__global__ void __launch_bounds__(256)
    resolve(const I *index, long long *offsets, long long *report, const __grid_constant__ Layout<2> layout,
            const __grid_constant__ Target target, long long first) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= layout.size) return;
  long long at[2];
  locate(layout, i, at);
  const long long before = first ? at[0] : offsets[i];
  long long share = 0;
  const bool found = place(static_cast<long long>(index[at[1]]), target, report, share);
  offsets[i] = found && before != kSkip ? before + share : kSkip;
}

// ---- rows: outer x count x units, where the units of a row are neighbours in the array and in the dense values ----

enum : int { kUnroll = 4 };  // units of a thread: loads that are under way together

struct Rows {
  long long outer, count, units;
  long long shift;       // log2(units), or -1
  long long outer_step;  // bytes in the array from one outer position to the next
  long long start;       // bytes from the pointer to the first element
};

// Which row of the index and which byte of the array, without the index's share, the unit `at` belongs to.
template <class Index, class U>
__device__ __forceinline__ void split(const Rows &rows, Index at, long long &row, long long &byte) {
  const Index all = rows.shift >= 0 ? at >> rows.shift : at / static_cast<Index>(rows.units);
  byte = rows.start + static_cast<long long>(at - all * static_cast<Index>(rows.units)) * int(sizeof(U));
  row = static_cast<long long>(all);
  if (rows.outer > 1) {
    const Index outer = all / static_cast<Index>(rows.count);
    row = static_cast<long long>(all - outer * static_cast<Index>(rows.count));
    byte += static_cast<long long>(outer) * rows.outer_step;
  }
}

template <class U>
__device__ __forceinline__ void split_unit(const Rows &rows, long long at, bool small, long long &row,
                                           long long &byte) {
  if (small) {
    split<unsigned, U>(rows, static_cast<unsigned>(at), row, byte);
  } else {
    split<unsigned long long, U>(rows, static_cast<unsigned long long>(at), row, byte);
  }
}

// out[o, i, :] = array[o, index[i], :]; zeros and a report where the index is out of range.
template <class U, class I>
__global__ void __launch_bounds__(256)
    gather_rows(const unsigned char *array, const I *index, U *out, long long *report,
                const __grid_constant__ Rows rows, const __grid_constant__ Target target) {
  const long long total = rows.outer * rows.count * rows.units;
  const bool small = total <= 0x7fffffffLL;
  const long long first = static_cast<long long>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  U got[kUnroll];
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const long long at = first + k * 256;
    if (at < total) {
      long long row, byte, share = 0;
      split_unit<U>(rows, at, small, row, byte);
      if (place(static_cast<long long>(index[row]), target, report, share)) {
        got[k] = *reinterpret_cast<const U *>(array + byte + share);
      } else {
        got[k] = U{};
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const long long at = first + k * 256;
    if (at < total) out[at] = got[k];
  }
}

// Where unit `at` of the dense values comes from; none where the index is out of range.
template <class U, class I>
__device__ __forceinline__ const U *source_of(const unsigned char *array, const I *index, long long *report,
                                              const Rows &rows, const Target &target, long long at, bool small) {
  long long row, byte, share = 0;
  split_unit<U>(rows, at, small, row, byte);
  if (!place(static_cast<long long>(index[row]), target, report, share)) return nullptr;
  return reinterpret_cast<const U *>(array + byte + share);
}

// The same for long rows of narrow units: a thread makes packs of 16 bytes of the result that lie there in memory, one
// by one the units of those that lie across rows.
template <class U, class I>
__global__ void __launch_bounds__(256)
    gather_packs(const unsigned char *array, const I *index, U *out, long long *report,
                 const __grid_constant__ Rows rows, const __grid_constant__ Target target) {
  constexpr int N = per_load<U>();
  const long long total = rows.outer * rows.count * rows.units;
  const bool small = total <= 0x7fffffffLL;
  const long long lead = phase<N>(out);
  const long long first = static_cast<long long>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  Held<U, N> low[kUnroll], high[kUnroll];
  int by[kUnroll];  // -1: unit by unit
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const long long at = (first + k * 256) * N - lead;
    by[k] = -1;
    low[k].keep(Pack<U, N>{});
    high[k].keep(Pack<U, N>{});
    if (at < 0 || at + N > total) continue;
    const long long in_row = small ? static_cast<unsigned>(at) % static_cast<unsigned>(rows.units) : at % rows.units;
    if (in_row + N > rows.units) continue;
    by[k] = 0;
    const U *from = source_of<U>(array, index, report, rows, target, at, small);
    if (!from) continue;
    const int own = phase<N>(from);
    if (!within<N, long long>(in_row, own, rows.units)) {
      by[k] = -1;
      continue;
    }
    by[k] = own;
    low[k].load(from - own);
    if (own) high[k].load(from - own + N);
  }
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const long long at = (first + k * 256) * N - lead;
    if (by[k] >= 0) {
      store_pack<N>(out + at, shifted(low[k].bits, high[k].bits, by[k]).pack);
      continue;
    }
    for (int j = 0; j < N; ++j) {
      if (at + j < 0 || at + j >= total) continue;
      const U *from = source_of<U>(array, index, report, rows, target, at + j, small);
      out[at + j] = from ? *from : U{};
    }
  }
}

// array[o, index[i], :] = values[o, i, :]; nothing but a report where the index is out of range.
template <class U, class I>
__global__ void __launch_bounds__(256)
    scatter_rows(unsigned char *array, const I *index, const U *values, long long *report,
                 const __grid_constant__ Rows rows, const __grid_constant__ Target target) {
  const long long total = rows.outer * rows.count * rows.units;
  const bool small = total <= 0x7fffffffLL;
  const long long first = static_cast<long long>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  for (int k = 0; k < kUnroll; ++k) {
    const long long at = first + k * 256;
    if (at >= total) return;
    long long row, byte, share = 0;
    split_unit<U>(rows, at, small, row, byte);
    if (!place(static_cast<long long>(index[row]), target, report, share)) continue;
    *reinterpret_cast<U *>(array + byte + share) = values[at];
  }
}

// ---- any layout: every element has its own index ----

// Elements that a thread makes of a result whose every element has an index.
template <class T>
__host__ __device__ constexpr int indexed_together() {
  return sizeof(T) < 8 ? 4 : sizeof(T) == 8 ? 2 : 1;
}

// N neighbouring index values, 16 bytes at a time where they lie at such.
template <int N, class I>
__device__ __forceinline__ void read_index(const I *from, long long step, long long (&values)[N]) {
  constexpr int M = per_load<I>() < N ? per_load<I>() : N;
  if (step == 1 && phase<M>(from) == 0) {
#pragma unroll
    for (int k = 0; k < N; k += M) {
      const Pack<I, M> pack = load_pack<M>(from + k);
      for (int j = 0; j < M; ++j) values[k + j] = static_cast<long long>(pack.v[j]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = static_cast<long long>(from[k * step]);
  }
}

// Operands of the layout: array (bytes), index (elements); out is dense. A thread makes neighbours, where they are of
// one row by one look at the layout.
template <class T, class I>
__global__ void __launch_bounds__(256)
    gather_strided(const unsigned char *array, const I *index, T *out, long long *report,
                   const __grid_constant__ Layout<2> layout, const __grid_constant__ Target target) {
  constexpr int N = indexed_together<T>();
  const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first >= layout.size) return;
  const int axis = static_cast<int>(layout.ndim) - 1;
  const long long extent = axis < 0 ? 1 : layout.shape[axis];
  const long long column =
      layout.size <= 0x7fffffffLL ? static_cast<unsigned>(first) % static_cast<unsigned>(extent) : first % extent;
  long long values[N], from[N], at[2];
  locate(layout, first, at);
  int count = N;
  if (column + N <= extent) {
    read_index<N>(index + at[1], axis < 0 ? 0 : layout.stride[1][axis], values);
    for (int k = 0; k < N; ++k) from[k] = at[0] + k * (axis < 0 ? 0 : layout.stride[0][axis]);
  } else {
    if (layout.size - first < N) count = static_cast<int>(layout.size - first);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (k >= count) break;
      if (k > 0) locate(layout, first + k, at);
      values[k] = static_cast<long long>(index[at[1]]);
      from[k] = at[0];
    }
  }
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    long long share = 0;
    if (k < count && place(values[k], target, report, share)) {
      pack.v[k] = *reinterpret_cast<const T *>(array + from[k] + share);
    } else {
      pack.v[k] = T{};
    }
  }
  if (count == N && phase<N>(out) == 0) {
    store_pack<N>(out + first, pack);
  } else {
    for (int k = 0; k < N; ++k) {
      if (k < count) out[first + k] = pack.v[k];
    }
  }
}

constexpr int kNearBytes = 24576;  // of a row that a block keeps

// The same where the index picks from the row that it lies in, `count` times: a block for each row, which it brings
// near first, as elements in any order are then near, too. Operands of the layout of rows: array (bytes), index
// (elements).
template <class T, class I>
__global__ void __launch_bounds__(256)
    gather_near(const unsigned char *array, const I *index, T *out, long long *report,
                const __grid_constant__ Layout<2> layout, const __grid_constant__ Target target, long long count) {
  constexpr int Loads = 8;  // under way, a thread
  __shared__ T near[kNearBytes / sizeof(T)];
  long long at[2];
  locate(layout, blockIdx.x, at);
  const T *from = reinterpret_cast<const T *>(array + at[0]);
  const int size = static_cast<int>(target.size), thread = static_cast<int>(threadIdx.x);
#pragma unroll Loads
  for (int i = thread; i < size; i += 256) near[i] = from[i];
  __syncthreads();
  const I *picks = index + at[1];
  T *to = out + static_cast<long long>(blockIdx.x) * count;
  for (long long i = thread; i < count; i += Loads * 256) {
    I values[Loads];
#pragma unroll
    for (int k = 0; k < Loads; ++k) values[k] = i + k * 256 < count ? picks[i + k * 256] : I(0);
#pragma unroll
    for (int k = 0; k < Loads; ++k) {
      long long share = 0;
      if (i + k * 256 >= count) break;
      const bool found = place(static_cast<long long>(values[k]), target, report, share);
      to[i + k * 256] = found ? near[share / static_cast<int>(sizeof(T))] : T{};
    }
  }
}

// Operands of the layout: array (bytes), index (elements), values (elements).
template <class T, class I>
__global__ void __launch_bounds__(256)
    scatter_strided(unsigned char *array, const I *index, const T *values, long long *report,
                    const __grid_constant__ Layout<3> layout, const __grid_constant__ Target target) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= layout.size) return;
  long long at[3], share = 0;
  locate(layout, i, at);
  if (!place(static_cast<long long>(index[at[1]]), target, report, share)) return;
  *reinterpret_cast<T *>(array + at[0] + share) = values[at[2]];
}

// ---- duplicates: of several values for one place, the one with the highest position stays ----

__device__ __forceinline__ unsigned long long slot_of(long long offset, unsigned long long mask) {
  unsigned long long bits = static_cast<unsigned long long>(offset) * 0x9e3779b97f4a7c15ull;
  return (bits ^ (bits >> 32)) & mask;
}

// table: slots keys, then slots positions, all kSkip before; slots is a power of two above the number of offsets. Which
// slot a key gets depends on timing, the highest position of each key does not.
__global__ void __launch_bounds__(256)
    claim(const long long *offsets, long long *table, long long count, long long slots) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count || offsets[i] == kSkip) return;
  const auto key = static_cast<unsigned long long>(offsets[i]);
  const auto mask = static_cast<unsigned long long>(slots - 1);
  for (unsigned long long slot = slot_of(offsets[i], mask);; slot = (slot + 1) & mask) {
    const unsigned long long found =
        atomicCAS(reinterpret_cast<unsigned long long *>(table) + slot, static_cast<unsigned long long>(kSkip), key);
    if (found != static_cast<unsigned long long>(kSkip) && found != key) continue;
    atomicMax(table + slots + slot, i);
    return;
  }
}

// Offsets that lost become kSkip.
__global__ void __launch_bounds__(256)
    settle(long long *offsets, const long long *table, long long count, long long slots) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count || offsets[i] == kSkip) return;
  const auto mask = static_cast<unsigned long long>(slots - 1);
  unsigned long long slot = slot_of(offsets[i], mask);
  while (table[slot] != offsets[i]) slot = (slot + 1) & mask;
  if (table[slots + slot] != i) offsets[i] = kSkip;
}

// ---- masks ----

// out[...] = *value where the mask holds. Operands of the layout: mask, out.
template <class T>
__global__ void __launch_bounds__(256)
    store_where(const bool *mask, const T *value, T *out, const __grid_constant__ Layout<2> layout) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= layout.size) return;
  long long at[2];
  locate(layout, i, at);
  if (mask[at[0]]) out[at[1]] = *value;
}

// ---- padding and rolling: every axis is shifted, and continued past its ends ----

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
  MappedRow<T> found{map.start, T{}, false};
  for (long long axis = map.ndim - 2; axis >= 0; --axis) {
    const Index extent = static_cast<Index>(map.shape[axis]);
    const Index above = axis ? row / extent : 0;
    const long long n = map.extent[axis];
    const long long here = static_cast<long long>(row - above * extent) - map.before[axis];
    if (map.continuation == kConstant && (here < 0 || here >= n)) {
      found.number = map.fill[axis][here < 0 ? 0 : 1];
      found.filled = true;
      return found;
    }
    found.at += continued(here, n, map.continuation) * map.stride[axis];
    row = above;
  }
  return found;
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

// ---- triangles ----

struct Triangle {
  long long rows, columns;
  long long diagonal;
  long long upper;
  long long span;  // elements from the pointer on that are the array's, between its rows too
};

// A thread makes 16 bytes of neighbours, and reads nothing where all of them are zeros.
template <class T>
__global__ void __launch_bounds__(256)
    triangle(const T *array, T *out, const __grid_constant__ Layout<1> layout, const __grid_constant__ Triangle which) {
  constexpr int N = per_load<T>();
  const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first >= layout.size) return;
  const int count = layout.size - first < N ? static_cast<int>(layout.size - first) : N;
  const bool small = layout.size <= 0x7fffffffLL;
  long long row = small ? static_cast<unsigned>(first) / static_cast<unsigned>(which.columns) : first / which.columns;
  long long column = first - row * which.columns;
  row = small ? static_cast<unsigned>(row) % static_cast<unsigned>(which.rows) : row % which.rows;
  const bool in_row = column + N <= which.columns;
  bool kept[N], some = false;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const long long above = column - row - which.diagonal;  // diagonals above the wanted one
    kept[k] = k < count && (which.upper ? above >= 0 : above <= 0);
    some = some || kept[k];
    if (++column == which.columns) {
      column = 0;
      row = row + 1 == which.rows ? 0 : row + 1;
    }
  }
  Pack<T, N> pack{};
  if (some) {
    long long at[1];
    locate(layout, first, at);
    const T *from = array + at[0];
    const bool side_by_side = layout.ndim > 0 && layout.stride[0][layout.ndim - 1] == 1 && (in_row || layout.ndim == 1);
    if (side_by_side && Span<T>{array, array + which.span}.template holds<N>(from)) {
      Across<T, N> coming;
      coming.load(from);
      pack = coming.arrived().pack();
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (!kept[k]) continue;
        locate(layout, first + k, at);
        pack.v[k] = array[at[0]];
      }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (!kept[k]) pack.v[k] = T{};
    }
  }
  if (count == N) {
    store_pack<N>(out + first, pack);
  } else {
    for (int k = 0; k < N; ++k) {
      if (k < count) out[first + k] = pack.v[k];
    }
  }
}

// ---- a few numbers of the host, in the launch itself: nothing waits ----

constexpr int kLiterals = 448;

struct Literals {
  long long value[kLiterals];
};

__global__ void __launch_bounds__(256)
    literals(long long *out, long long count, const __grid_constant__ Literals numbers) {
  for (long long i = threadIdx.x; i < count; i += blockDim.x) out[i] = numbers.value[i];
}

}  // namespace pk
