// tiles.cuh: how tile kernels of matrix products look at stacks of matrices, and which tile a block makes.
#pragma once
#include <cuda_tile.h>

namespace pk {

namespace ct = cuda::tiles;
using namespace ct::literals;

constexpr int kRaster = 8;  // rows of tiles that blocks walk down before they go a tile to the right

// Tiles of a stack of matrices whose rows lie one after the other, `lead` elements apart.
template <int Rows, int Columns, typename Pointer>
__tile__ auto tiles_of(Pointer data, int batches, int rows, int columns, int lead, int step) {
  auto layout = ct::layout_strided_mapping{ct::extents{batches, rows, columns}, ct::extents{step, lead, 1_ic}};
  return ct::partition_view{ct::tensor_span{data, layout}, ct::shape<1, Rows, Columns>{}};
}

struct Place {
  int row, column;
};

// The tile of a result of m rows and n columns that this block makes. Neighbours share rows of the left operand and
// columns of the right one in the L2 cache.
template <int Rows, int Columns>
__tile__ Place place_of_block(int m, int n) {
  const int down = (m + Rows - 1) / Rows, across = (n + Columns - 1) / Columns;
  const int strip = ct::bid().x / (kRaster * across), first = strip * kRaster;
  const int height = down - first < kRaster ? down - first : kRaster, place = ct::bid().x % (kRaster * across);
  return {first + place % height, place / height};
}

}  // namespace pk
