// tiles.cuh: how tile kernels of matrix products look at stacks of matrices, and which tile a block makes.
#pragma once
#include <cuda_tile.h>

namespace pk {

namespace ct = cuda::tiles;
using namespace ct::literals;

constexpr int kRaster = 8;  // rows of tiles that blocks walk down before they go a tile to the right

// Tiles of a stack of matrices whose rows lie one after the other, `lead` elements apart.
template <int Rows, int Columns, typename Pointer>
__tile__ auto tiles_of(Pointer data, int matrices, int rows, int columns, int lead, int step) {
  auto layout = ct::layout_strided_mapping{ct::extents{matrices, rows, columns}, ct::extents{step, lead, 1_ic}};
  return ct::partition_view{ct::tensor_span{data, layout}, ct::shape<1, Rows, Columns>{}};
}

// Tiles of an operand for rows of the result, or its columns. AlongK: these lie along k, filled up with zeros to whole 16
// bytes; else across it.
template <int Lines, int Depth, bool AlongK, typename Pointer>
__tile__ auto lines_of(Pointer data, int matrices, int lines, int k, int filled, int lead, int step) {
  if constexpr (AlongK) return tiles_of<Lines, Depth>(data, matrices, lines, filled, lead, step);
  else return tiles_of<Depth, Lines>(data, matrices, k, lines, lead, step);
}

// Step i of the sum over k, of the left operand's lines_of(): Rows x Depth. Transposed: its rows lie across k.
template <int Rows, int Depth, bool Transposed, typename View>
__tile__ auto left_step(View lines, int matrix, int row, int i) {
  if constexpr (Transposed)
    return ct::transpose(ct::reshape(lines.load_masked(matrix, i, row), ct::shape<Depth, Rows>{}));
  else
    return ct::reshape(lines.load_masked(matrix, row, i), ct::shape<Rows, Depth>{});
}

// Of the right operand's, Depth x Columns. Transposed: its columns lie along k.
template <int Columns, int Depth, bool Transposed, typename View>
__tile__ auto right_step(View lines, int matrix, int column, int i) {
  if constexpr (Transposed)
    return ct::transpose(ct::reshape(lines.load_masked(matrix, column, i), ct::shape<Columns, Depth>{}));
  else
    return ct::reshape(lines.load_masked(matrix, i, column), ct::shape<Depth, Columns>{});
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
