// grouped.cu: products of groups of rows, each with a weight of its own; how many rows a group has stands on the
// device.
#include "gemm.cuh"

namespace pk {

struct GroupedCall {
  long long rows, n, k;
  long long start[3];  // of x, w, out: elements from the pointer to the first element
  long long row[3];    // elements from one row to the next
  long long column[3];
  long long group;  // elements from one weight to the next
  int groups, unused;
};

// out[i] = x[i] @ w[the group of row i]. Rows after the last group's become 0; what counts say beyond the rows is not.
// A block finds its tile by counting those of the groups before it.
template <class T>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm_grouped(const T *x, const T *w, const int *counts, T *out, const __grid_constant__ GroupedCall p) {
  using A = accumulator_t<T>;
  __shared__ GemmTiles<A> tiles;
  const long long tiles_n = (p.n + kTile - 1) / kTile;
  const long long column0 = blockIdx.x % tiles_n * kTile;
  long long tile = blockIdx.x / tiles_n, first = 0, count = 0;
  int group = 0;
  for (; group <= p.groups; ++group) {
    const long long left = p.rows - first, requested = group < p.groups ? counts[group] : left;
    count = requested < 0 ? 0 : requested < left ? requested : left;
    const long long own = (count + kTile - 1) / kTile;
    if (tile < own) break;
    tile -= own;
    first += count;
  }
  if (group > p.groups) return;
  const long long end = first + count, row0 = first + tile * kTile;
  TileSums<A> sum = {};
  if (group < p.groups) {
    const T *weight = w + p.start[1] + group * p.group;
    add_products<T>({x + p.start[0], end, p.row[0], p.column[0]}, {weight, p.n, p.column[1], p.row[1]}, row0, column0,
                    p.k, tiles, sum);
  }
  for (int i = 0; i < kPerThread; ++i) {
    for (int j = 0; j < kPerThread; ++j) {
      const long long row = row0 + tile_row(i);
      const long long column = column0 + tile_column(j);
      if (row < end && column < p.n)
        out[p.start[2] + row * p.row[2] + column * p.column[2]] = convert<T>::from(sum[i][j]);
    }
  }
}

}  // namespace pk
