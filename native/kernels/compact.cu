// compact.cu: what a boolean mask selects, in C order: counted by tiles, then written as indices, elements or rows.
#include "numeric.cuh"

namespace pk {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPerThread = 16;
constexpr int kTile = kThreads * kPerThread;  // elements of the mask that a block looks at

// How many of the bytes of a word are not zero.
__device__ __forceinline__ int count_set(unsigned word) {
  return __popc((((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u);
}

struct alignas(16) Words {
  unsigned v[4];
};

__global__ void __launch_bounds__(kThreads) count_mask(const unsigned char *mask, long long *counts, long long n) {
  __shared__ int warp_counts[kWarps];
  const long long i = static_cast<long long>(blockIdx.x) * kTile + threadIdx.x * kPerThread;
  int count = 0;
  if (i + kPerThread <= n && reinterpret_cast<unsigned long long>(mask) % 16 == 0) {
    const Words words = *reinterpret_cast<const Words *>(mask + i);
    for (int k = 0; k < 4; ++k) count += count_set(words.v[k]);
  } else {
    for (long long k = i; k < i + kPerThread && k < n; ++k) count += mask[k] != 0;
  }
  count = __reduce_add_sync(kAllLanes, count);
  if (threadIdx.x % 32 == 0) warp_counts[threadIdx.x / 32] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w) count += warp_counts[w];
    counts[blockIdx.x] = count;
  }
}

// Calls write(element, rank) for every set element of the block's tile; ends[t] counts those of the tiles up to t.
template <class Write>
__device__ __forceinline__ void for_selected(const unsigned char *mask, const long long *ends, long long n,
                                             Write write) {
  __shared__ int starts[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const long long first = static_cast<long long>(blockIdx.x) * kTile + warp * (kTile / kWarps) + lane;
  unsigned set = 0;  // bit k: element k of this thread
  for (int k = 0; k < kPerThread; ++k) {
    const long long i = first + k * 32;
    set |= static_cast<unsigned>(i < n && mask[i] != 0) << k;
  }
  const int count = __reduce_add_sync(kAllLanes, __popc(set));
  if (lane == 0) starts[warp] = count;
  __syncthreads();
  long long rank = blockIdx.x == 0 ? 0 : ends[blockIdx.x - 1];
  for (int w = 0; w < warp; ++w) rank += starts[w];
  for (int k = 0; k < kPerThread; ++k) {
    const bool mine = (set >> k & 1u) != 0;
    const unsigned lanes = __ballot_sync(kAllLanes, mine);
    if (mine) write(first + k * 32, rank + __popc(lanes & ((1u << lane) - 1u)));
    rank += __popc(lanes);
  }
}

// out[axis][rank] = coordinate of the selected element; one axis: its index.
__global__ void __launch_bounds__(kThreads) compress_coordinates(const unsigned char *mask, const long long *ends,
                                                                 long long *out,
                                                                 const __grid_constant__ Layout<1> layout) {
  const long long count = ends[gridDim.x - 1];
  for_selected(mask, ends, layout.size, [&](long long index, long long rank) {
    for (long long axis = layout.ndim - 1; axis > 0; --axis) {
      const long long above = index / layout.shape[axis];
      out[axis * count + rank] = index - above * layout.shape[axis];
      index = above;
    }
    out[rank] = index;
  });
}

// out[rank] = the selected element of any layout.
template <class T>
__global__ void __launch_bounds__(kThreads) compress_elements(const T *values, const unsigned char *mask,
                                                              const long long *ends, T *out,
                                                              const __grid_constant__ Layout<1> layout) {
  const bool line = layout.ndim <= 1;
  const long long step = layout.stride[0][0];
  for_selected(mask, ends, layout.size, [&](long long index, long long rank) {
    long long at[1] = {layout.start[0] + index * step};
    if (!line) locate(layout, index, at);
    out[rank] = values[at[0]];
  });
}

struct RowsLayout {
  long long rows;   // of the output
  long long width;  // elements of a row
};

// out[row] = values[rows[row]], rows dense.
template <class T>
__global__ void __launch_bounds__(kThreads)
    take_rows(const T *values, const long long *rows, T *out, const __grid_constant__ RowsLayout p) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.rows * p.width) return;
  const long long row = i / p.width;
  out[i] = values[rows[row] * p.width + (i - row * p.width)];
}

}  // namespace pk
