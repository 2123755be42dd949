// half.cu: products of matrices on tensor cores, as tile kernels.
//
// One block makes one tile of one product of the batch. The sum over k runs in steps of Depth in ascending order, in
// float32: a row's bits depend on k, the types and Depth's order alone, not on the tile's size, the other rows or the
// batch.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

// c = a @ b, for a stack of matrices. a: m rows of k, or k rows of m where ATransposed; b: k rows of n, or n rows of k
// where BTransposed. lead and step: elements between rows and between matrices. matrices, repeat: product i has matrix
// i / repeat % matrices of an operand. Bulk copies need rows of whole 16 bytes: pointers of a and b are multiples of 16
// bytes, their leads and steps of 8 elements. So are m and n where they are the length of a row; where k is, the rows
// are filled up with zeros. CAligned: c is as a and b.
template <typename Element, int Rows, int Columns, int Depth, int Warps, bool ATransposed, bool BTransposed, bool CAligned>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void matmul(const Element *__restrict__ a_, const Element *__restrict__ b_, Element *__restrict__ c_,
                            int batches, int m_, int n_, int k, int a_lead_, int b_lead_, int c_lead_, int a_step_,
                            int b_step_, int c_step_, int a_matrices, int a_repeat, int b_matrices, int b_repeat) {
  auto a = ct::assume_aligned<16>(a_);
  auto b = ct::assume_aligned<16>(b_);
  int a_lead = ct::assume_divisible<8>(a_lead_), b_lead = ct::assume_divisible<8>(b_lead_);
  int a_step = ct::assume_divisible<8>(a_step_), b_step = ct::assume_divisible<8>(b_step_);
  int m = m_, n = n_, filled = ct::assume_divisible<8>((k + 7) / 8 * 8);
  if constexpr (ATransposed) m = ct::assume_divisible<8>(m);
  if constexpr (!BTransposed || CAligned) n = ct::assume_divisible<8>(n);
  auto left = lines_of<Rows, Depth, !ATransposed>(a, a_matrices, m, k, filled, a_lead, a_step);
  auto right = lines_of<Columns, Depth, BTransposed>(b, b_matrices, n, k, filled, b_lead, b_step);

  const auto [row, column] = place_of_block<Rows, Columns>(m, n);
  const int matrix = ct::bid().y, a_matrix = matrix / a_repeat % a_matrices, b_matrix = matrix / b_repeat % b_matrices;

  auto sum = ct::full<ct::tile<float, ct::shape<Rows, Columns>>>(0.0f);
  for (auto i : ct::irange(0, (k + Depth - 1) / Depth))
    sum = ct::mma(left_step<Rows, Depth, ATransposed>(left, a_matrix, row, i),
                  right_step<Columns, Depth, BTransposed>(right, b_matrix, column, i), sum);

  auto rounded = ct::reshape(ct::element_cast<Element>(sum), ct::shape<1, Rows, Columns>{});
  if constexpr (CAligned) {
    auto out = tiles_of<Rows, Columns>(ct::assume_aligned<16>(c_), batches, m, n, ct::assume_divisible<8>(c_lead_),
                                       ct::assume_divisible<8>(c_step_));
    out.store_masked(rounded, matrix, row, column);
  } else {
    tiles_of<Rows, Columns>(c_, batches, m, n, c_lead_, c_step_).store_masked(rounded, matrix, row, column);
  }
}

}  // namespace pk
