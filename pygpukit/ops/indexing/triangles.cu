// triangles.cu: what lies on one side of a diagonal, and zeros.
#include "numeric.cuh"
#include "span.cuh"

namespace pk {

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

}  // namespace pk
