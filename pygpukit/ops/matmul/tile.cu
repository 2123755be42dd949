// tile.cu: products of matrices on tensor cores, as tile kernels.
//
// One block makes one tile of one product of the batch. The sum over k runs in steps of Depth in ascending order, in
// float32: a row's bits depend on k, the types and Depth's order alone, not on the tile's size, the other rows or the
// batch.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

// c = a @ b, for a stack of matrices. a: m rows of k, or k rows of m where ATransposed; b: k rows of n, or n rows of k
// where BTransposed. lead and step: elements between rows and between matrices. Bulk copies need rows of whole 16 bytes:
// pointers of a and b are multiples of 16 bytes, their leads and steps of 8 elements. So are m and n where they are the
// length of a row; where k is, the rows are filled up with zeros. CAligned: c is as a and b.
template <typename Element, int Rows, int Columns, int Depth, int Warps, bool ATransposed, bool BTransposed, bool CAligned>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void matmul(const Element *__restrict__ a_, const Element *__restrict__ b_, Element *__restrict__ c_,
                            int batches, int m_, int n_, int k, int a_lead_, int b_lead_, int c_lead_, int a_step_,
                            int b_step_, int c_step_) {
  auto a = ct::assume_aligned<16>(a_);
  auto b = ct::assume_aligned<16>(b_);
  int a_lead = ct::assume_divisible<8>(a_lead_), b_lead = ct::assume_divisible<8>(b_lead_);
  int a_step = ct::assume_divisible<8>(a_step_), b_step = ct::assume_divisible<8>(b_step_);
  int m = m_, n = n_, filled = ct::assume_divisible<8>((k + 7) / 8 * 8);
  if constexpr (ATransposed) m = ct::assume_divisible<8>(m);
  if constexpr (!BTransposed || CAligned) n = ct::assume_divisible<8>(n);
  auto left = [&] {
    if constexpr (ATransposed) return tiles_of<Depth, Rows>(a, batches, k, m, a_lead, a_step);
    else return tiles_of<Rows, Depth>(a, batches, m, filled, a_lead, a_step);
  }();
  auto right = [&] {
    if constexpr (BTransposed) return tiles_of<Columns, Depth>(b, batches, n, filled, b_lead, b_step);
    else return tiles_of<Depth, Columns>(b, batches, k, n, b_lead, b_step);
  }();

  const auto [row, column] = place_of_block<Rows, Columns>(m, n);
  const int matrix = ct::bid().y;

  auto sum = ct::full<ct::tile<float, ct::shape<Rows, Columns>>>(0.0f);
  for (auto i : ct::irange(0, (k + Depth - 1) / Depth)) {
    if constexpr (!ATransposed && !BTransposed)
      sum = ct::mma(ct::reshape(left.load_masked(matrix, row, i), ct::shape<Rows, Depth>{}),
                    ct::reshape(right.load_masked(matrix, i, column), ct::shape<Depth, Columns>{}), sum);
    else if constexpr (!ATransposed)
      sum = ct::mma(ct::reshape(left.load_masked(matrix, row, i), ct::shape<Rows, Depth>{}),
                    ct::transpose(ct::reshape(right.load_masked(matrix, column, i), ct::shape<Columns, Depth>{})), sum);
    else if constexpr (!BTransposed)
      sum = ct::mma(ct::transpose(ct::reshape(left.load_masked(matrix, i, row), ct::shape<Depth, Rows>{})),
                    ct::reshape(right.load_masked(matrix, i, column), ct::shape<Depth, Columns>{}), sum);
    else
      sum = ct::mma(ct::transpose(ct::reshape(left.load_masked(matrix, i, row), ct::shape<Depth, Rows>{})),
                    ct::transpose(ct::reshape(right.load_masked(matrix, column, i), ct::shape<Columns, Depth>{})), sum);
  }

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
