// gather.cu: moving elements to and from computed places: index arrays, masked stores.
#include "numeric.cuh"
#include "report.cuh"
#include "shifted.cuh"

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
  const bool is_inside = place(static_cast<long long>(index[at[1]]), target, report, share);
  offsets[i] = is_inside && before != kSkip ? before + share : kSkip;
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
      const bool is_inside = place(static_cast<long long>(values[k]), target, report, share);
      to[i + k * 256] = is_inside ? near[share / static_cast<int>(sizeof(T))] : T{};
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
    const unsigned long long is_inside =
        atomicCAS(reinterpret_cast<unsigned long long *>(table) + slot, static_cast<unsigned long long>(kSkip), key);
    if (is_inside != static_cast<unsigned long long>(kSkip) && is_inside != key) continue;
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
