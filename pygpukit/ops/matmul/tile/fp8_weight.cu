// fp8_weight.cu: products of float16 or bfloat16 with fp8 weights, on tensor cores.
//
// The weight is read as it is stored, one byte an element, and decoded, exactly, to the type of the rows, whose products
// the tensor cores sum in float32. It is their left operand, so that products of few rows waste no part of a tile. 128 of
// k are summed from zero, scaled and added in float32, in ascending order: a row's bits do not depend on the tile's size
// or the other rows.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace pk {

constexpr int kBlock = 128;  // of k, and of columns, that share a scale

// Scales of Count lines, from number first * Count on, `step` apart; 1 from `count` on. Pointers that are masked, not a
// view: a view's tile must not lie wholly outside.
template <int Count>
__tile__ auto scales_of(const float *scales, int count, int step, int first) {
  const auto line = ct::iota<ct::tile<int, ct::shape<Count>>>() + first * Count;
  return ct::load_masked(scales + line * step, line < count, 1.0f);
}

// c = (factor a scaled) @ (w scaled), rounded once. a: m rows of k; w: n columns of k. Rows of both are whole 16 bytes,
// as in half.cu; with zeros from k on. c: dense rows of n, at any alignment. Scales, as many as said, strides 0 repeat:
// of_rows of a's rows, of_columns of w's columns, of_blocks of 128 of k, a step apart for 128 columns each.
template <typename Weight, typename Element, typename Result, int Rows, int Columns, int Warps, int Blocks>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps, occupancy=Blocks) ]]
__tile_global__ void decoded(const Element *__restrict__ a_, const Weight *__restrict__ w_, Result *__restrict__ c,
                             const float *__restrict__ of_rows, const float *__restrict__ of_columns,
                             const float *__restrict__ of_blocks, float factor, int m, int n, int k, int a_lead,
                             int w_lead, int rows_scaled, int row_step, int columns_scaled, int column_step,
                             int blocks_scaled, int column_block_step, int k_block_step) {
  static_assert(kBlock % Columns == 0, "a tile has the columns of one scale");
  using Sums = ct::tile<float, ct::shape<Columns, Rows>>;
  const int a_filled = ct::assume_divisible<8>((k + 7) / 8 * 8);
  const int w_filled = ct::assume_divisible<16>((k + 15) / 16 * 16);
  auto rows = tiles_of<Rows, kBlock>(ct::assume_aligned<16>(a_), 1, m, a_filled, ct::assume_divisible<8>(a_lead), 0);
  auto weight =
      tiles_of<Columns, kBlock>(ct::assume_aligned<16>(w_), 1, n, w_filled, ct::assume_divisible<16>(w_lead), 0);
  const auto [column, row] = place_of_block<Columns, Rows>(n, m);
  const int blocks = (k + kBlock - 1) / kBlock;
  const float *of_column = of_blocks + column / (kBlock / Columns) * column_block_step;

  auto sum = ct::full<Sums>(0.0f);
  for (auto i : ct::irange(0, blocks)) {
    auto read = ct::reshape(weight.load_masked(0, column, i), ct::shape<Columns, kBlock>{});
    auto part = ct::mma(ct::element_cast<Element>(read), right_step<Rows, kBlock, true>(rows, 0, row, i),
                        ct::full<Sums>(0.0f));
    auto scale = ct::reshape(scales_of<1>(of_column, blocks_scaled, k_block_step, i), ct::shape<1, 1>{});
    sum = ct::fma(part, ct::broadcast(scale, ct::shape<Columns, Rows>{}), sum);
  }
  auto down = ct::reshape(scales_of<Columns>(of_columns, columns_scaled, column_step, column), ct::shape<Columns, 1>{});
  auto along = ct::reshape(scales_of<Rows>(of_rows, rows_scaled, row_step, row), ct::shape<1, Rows>{});
  auto scaled = ct::element_cast<Result>(sum * (down * along * factor));
  auto rounded = ct::reshape(ct::transpose(scaled), ct::shape<1, Rows, Columns>{});
  tiles_of<Rows, Columns>(c, 1, m, n, n, 0).store_masked(rounded, 0, row, column);
}

}  // namespace pk
