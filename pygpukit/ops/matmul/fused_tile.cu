// fused_tile.cu: products of matrices on tensor cores with an epilogue, as tile kernels: rounded once, after it.
//
// Sums are those of tile.cu, to the bit, and what follows is the same arithmetic in every tile: a row's bits depend on k,
// the types and the epilogue alone.
#include "tiles.cuh"

#include "activation_tile.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

// c = act(alpha a @ b + bias) + beta residual. Gated: silu(alpha a @ b + bias) (alpha a @ up + the next n of bias), without
// a residual; up_bias is the next n of bias. a: m rows of k. b and up: n columns. Bulk copies need rows of whole 16 bytes, as in tile.cu. residual and c: rows of n, filled up to
// 16 bytes.
template <typename Element, int Rows, int Columns, int Depth, int Warps, bool BTransposed, bool Gated>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void matmul_after(const Element *__restrict__ a, const Element *__restrict__ b,
                                  const Element *__restrict__ up_, const Element *__restrict__ bias,
                                  const Element *__restrict__ up_bias,
                                  const Element *residual, Element *c, int m, int n, int k, int a_lead, int b_lead,
                                  int c_lead, int residual_lead, int has_bias, int has_residual, float alpha, float beta,
                                  float least, float e0, float e1, float e2, float c0, float c1, float p0, float p1,
                                  float p2, float p3, float p4) {
  using Sums = ct::tile<float, ct::shape<Rows, Columns>>;
  const int filled = ct::assume_divisible<8>((k + 7) / 8 * 8), width = ct::assume_divisible<8>((n + 7) / 8 * 8);
  const int columns = BTransposed ? n : width;
  auto left = lines_of<Rows, Depth, true>(ct::assume_aligned<16>(a), 1, m, k, filled, ct::assume_divisible<8>(a_lead), 0);
  auto right = lines_of<Columns, Depth, BTransposed>(ct::assume_aligned<16>(b), 1, columns, k, filled,
                                                     ct::assume_divisible<8>(b_lead), 0);
  auto ups = lines_of<Columns, Depth, BTransposed>(ct::assume_aligned<16>(up_), 1, columns, k, filled,
                                                   ct::assume_divisible<8>(b_lead), 0);
  const auto [row, column] = place_of_block<Rows, Columns>(m, n);

  auto sum = ct::full<Sums>(0.0f), up = sum;
  for (auto i : ct::irange(0, (k + Depth - 1) / Depth)) {
    auto rows = left_step<Rows, Depth, false>(left, 0, row, i);
    sum = ct::mma(rows, right_step<Columns, Depth, BTransposed>(right, 0, column, i), sum);
    if constexpr (Gated) up = ct::mma(rows, right_step<Columns, Depth, BTransposed>(ups, 0, column, i), up);
  }

  const Curve curve = Gated ? kSiluCurve : Curve{least, e0, e1, e2, c0, c1, p0, p1, p2, p3, p4};
  const int numbers = has_bias ? n : 0;  // none reads as zeros
  const auto biases_of = [&](const Element *from) {
    auto read = ct::partition_view{ct::tensor_span{from, ct::extents{numbers}}, ct::shape<Columns>{}}.load_masked(column);
    auto line = ct::reshape(ct::element_cast<float>(read), ct::shape<1, Columns>{});
    return ct::broadcast(line, ct::shape<Rows, Columns>{});
  };
  auto value = ct::fma(sum, ct::full<Sums>(alpha), biases_of(bias));
  value = activated(value, curve);
  if constexpr (Gated) {
    value = value * ct::fma(up, ct::full<Sums>(alpha), biases_of(up_bias));
  } else {
    // Without a residual what is read lies behind the one row of 8 numbers that there is then, and is 0: a branch would
    // spill the sums.
    auto others = tiles_of<Rows, Columns>(ct::assume_aligned<16>(residual), 1, has_residual ? m : 1,
                                          has_residual ? width : 8, ct::assume_divisible<8>(residual_lead), 0);
    auto other = others.load_masked(0, has_residual ? row : 1, has_residual ? column : 0);
    value = ct::fma(ct::element_cast<float>(ct::reshape(other, ct::shape<Rows, Columns>{})), ct::full<Sums>(beta), value);
  }
  auto out = tiles_of<Rows, Columns>(ct::assume_aligned<16>(c), 1, m, width, ct::assume_divisible<8>(c_lead), 0);
  out.store_masked(ct::reshape(ct::element_cast<Element>(value), ct::shape<1, Rows, Columns>{}), 0, row, column);
}

}  // namespace pk
