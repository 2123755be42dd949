// search.cu: binary search in sorted arrays, and what unique() does with them.
#include "order.cuh"

namespace pk {

struct SearchLayout {
  long long length;  // of the sorted array
  long long count;   // of values looked for
  long long right;   // 1: behind equal elements, 0: before them
};

template <class T>
__global__ void __launch_bounds__(256)
    search_sorted(const T *sorted, const T *values, long long *out, const __grid_constant__ SearchLayout p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.count) return;
  const T value = values[i];
  long long low = 0, high = p.length;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    const T element = sorted[middle];
    const bool below = p.right != 0 ? !precedes(value, element) : precedes(element, value);
    if (below) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  out[i] = low;
}

struct HeadsLayout {
  long long length;
  long long equal_nan;
};

// heads[i]: the element differs from the one before it.
template <class T>
__global__ void __launch_bounds__(256)
    mark_heads(const T *sorted, bool *heads, const __grid_constant__ HeadsLayout p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.length) return;
  bool head = i == 0;
  if (!head) {
    const T before = sorted[i - 1];
    const T here = sorted[i];
    head = is_nan(here) ? p.equal_nan == 0 || !is_nan(before) : precedes(before, here);
  }
  heads[i] = head;
}

// out[order[i]] = ranks[i] - 1: for each element of the unsorted array, which of the unique ones it is.
__global__ void __launch_bounds__(256)
    invert_order(const long long *order, const long long *ranks, long long *out, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[order[i]] = ranks[i] - 1;
}

}  // namespace pk
