// fp8.cu: products of fp8 with scales, on tensor cores.
//
// The tensor cores sum fp8 with fewer bits than float32 has. So they sum 128 of k at a time, from zero, and these partial
// sums are added in float32, in ascending order. The tensor cores read both operands along k alone.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace pk {

constexpr int kBlock = 128;  // of k, and of columns, that share a scale; and of k that the tensor cores sum

// c = (a scaled) @ (b scaled), rounded once. a: m rows of k; b: n columns of k; both `filled` bytes apart, a multiple of
// 16, with zeros from k on. c: dense rows of n, filled up to 16 bytes. Scales of a: element (row, block of k). ByBlock:
// those of b are (block of columns, block of k); else (column, 0), and those of a are (row, 0). Strides of 0 repeat.
template <typename Element, typename Result, int Rows, int Columns, int Warps, bool ByBlock>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void scaled(const Element *__restrict__ a_, const Element *__restrict__ b_, Result *__restrict__ c_,
                            const float *__restrict__ a_scale, const float *__restrict__ b_scale, int m, int n, int k,
                            int filled_, int a_scale_row, int a_scale_block, int b_scale_column, int b_scale_block) {
  static_assert(!ByBlock || Columns == kBlock, "a tile has the columns of one scale");
  constexpr int kWholeOut = 16 / sizeof(Result);
  const int filled = ct::assume_divisible<16>(filled_), blocks = (k + kBlock - 1) / kBlock;
  const int width = ct::assume_divisible<kWholeOut>((n + kWholeOut - 1) / kWholeOut * kWholeOut);
  auto left = tiles_of<Rows, kBlock>(ct::assume_aligned<16>(a_), 1, m, filled, filled, 0);
  auto right = tiles_of<Columns, kBlock>(ct::assume_aligned<16>(b_), 1, n, filled, filled, 0);
  auto of_rows = ct::partition_view{
      ct::tensor_span{a_scale, ct::layout_strided_mapping{ct::extents{m, blocks}, ct::extents{a_scale_row, a_scale_block}}},
      ct::shape<Rows, 1>{}};
  const int scales = ByBlock ? (n + kBlock - 1) / kBlock : n;
  auto of_columns = ct::partition_view{
      ct::tensor_span{b_scale,
                      ct::layout_strided_mapping{ct::extents{blocks, scales}, ct::extents{b_scale_block, b_scale_column}}},
      ct::shape<1, ByBlock ? 1 : Columns>{}};
  const auto [row, column] = place_of_block<Rows, Columns>(m, n);

  auto sum = ct::full<ct::tile<float, ct::shape<Rows, Columns>>>(0.0f);
  for (auto i : ct::irange(0, blocks)) {
    auto part = ct::mma(ct::reshape(left.load_masked(0, row, i), ct::shape<Rows, kBlock>{}),
                        ct::transpose(ct::reshape(right.load_masked(0, column, i), ct::shape<Columns, kBlock>{})),
                        ct::full<ct::tile<float, ct::shape<Rows, Columns>>>(0.0f));
    if constexpr (ByBlock) sum = sum + part * (of_rows.load_masked(row, i) * of_columns.load_masked(i, column));
    else sum = sum + part;
  }
  if constexpr (!ByBlock) sum = sum * (of_rows.load_masked(row, 0) * of_columns.load_masked(0, column));
  auto out = tiles_of<Rows, Columns>(ct::assume_aligned<16>(c_), 1, m, width, width, 0);
  out.store_masked(ct::reshape(ct::element_cast<Result>(sum), ct::shape<1, Rows, Columns>{}), 0, row, column);
}

}  // namespace pk
