// gemv.cu: products of few rows with a large right operand, on tensor cores.
//
// Each element of b is used once, so that all that counts is how many bytes of it are on their way at a time. The
// tensor cores take b as their left operand, and the few rows, filled up, as narrow columns: all of a multiprocessor's
// shared memory holds b. The sum over k runs as in half.cu, in ascending order in float32: the same bits. It is not
// split over k, which would give others.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

// c = a @ b, for a stack of matrices. a: m <= Rows rows of k; b: k rows of n, or n rows of k where BTransposed. lead,
// step, matrices, repeat, and what must be whole 16 bytes: as in half.cu. c: dense rows of n, at any alignment.
template <typename Element, int Rows, int Columns, int Depth, int Warps, int Blocks, bool BTransposed>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps, occupancy=Blocks) ]]
__tile_global__ void skinny(const Element *__restrict__ a_, const Element *__restrict__ b_, Element *__restrict__ c,
                            int batches, int m, int n_, int k, int a_lead, int b_lead, int a_step, int b_step,
                            int a_matrices, int a_repeat, int b_matrices, int b_repeat) {
  int n = n_, filled = ct::assume_divisible<8>((k + 7) / 8 * 8);
  if constexpr (!BTransposed) n = ct::assume_divisible<8>(n);
  auto skinny_lines = lines_of<Rows, Depth, true>(ct::assume_aligned<16>(a_), a_matrices, m, k, filled,
                                         ct::assume_divisible<8>(a_lead), ct::assume_divisible<8>(a_step));
  auto weight = lines_of<Columns, Depth, BTransposed>(ct::assume_aligned<16>(b_), b_matrices, n, k, filled,
                                                      ct::assume_divisible<8>(b_lead), ct::assume_divisible<8>(b_step));
  const int column = ct::bid().x, matrix = ct::bid().y;
  const int a_matrix = matrix / a_repeat % a_matrices, b_matrix = matrix / b_repeat % b_matrices;

  auto sum = ct::full<ct::tile<float, ct::shape<Columns, Rows>>>(0.0f);
  for (auto i : ct::irange(0, (k + Depth - 1) / Depth))
    sum = ct::mma(left_step<Columns, Depth, !BTransposed>(weight, b_matrix, column, i),
                  right_step<Rows, Depth, true>(skinny_lines, a_matrix, 0, i), sum);

  auto rounded = ct::reshape(ct::transpose(ct::element_cast<Element>(sum)), ct::shape<1, Rows, Columns>{});
  tiles_of<Rows, Columns>(c, batches, m, n_, n_, m * n_).store_masked(rounded, matrix, 0, column);
}

}  // namespace pk
