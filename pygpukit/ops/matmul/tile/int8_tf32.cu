// int8_tf32.cu: products of int8, summed in int32, and of float32 rounded to tf32, summed in float32, on tensor cores.
//
// The tensor cores read both operands of these types along k alone. The sum over k runs in ascending order: a row's bits
// do not depend on the tile's size, the other rows or the batch. Sums of int8 are exact; past int32 they wrap.
#include "tiles.cuh"

#include <cuda_tf32.h>

namespace pk {

template <typename Element>
struct Narrow;  // what elements are multiplied as, and what they are summed in

template <>
struct Narrow<signed char> {
  using Factor = signed char;
  using Sum = int;
};

template <>
struct Narrow<float> {
  using Factor = __nv_tf32;
  using Sum = float;
};

// c = a @ b, for a stack of matrices. a: m rows of k; b: n columns of k. lead and step: elements between rows (of b
// columns) and between matrices; product i has matrix i / repeat % matrices of an operand. Bulk copies need rows of whole 16 bytes: pointers, leads and steps of a and b are
// multiples of them; where k is not, the rows are filled up with zeros. c: dense rows of n, filled up to 16 bytes.
template <typename Element, int Rows, int Columns, int Depth, int Warps>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void narrow(const Element *__restrict__ a_, const Element *__restrict__ b_,
                            typename Narrow<Element>::Sum *__restrict__ c_, int batches, int m, int n, int k,
                            int a_lead, int b_lead, int a_step, int b_step, int a_matrices, int a_repeat, int b_matrices,
                            int b_repeat) {
  using Factor = typename Narrow<Element>::Factor;
  using Sum = typename Narrow<Element>::Sum;
  constexpr int kWhole = 16 / sizeof(Element), kWholeOut = 16 / sizeof(Sum);
  const int filled = ct::assume_divisible<kWhole>((k + kWhole - 1) / kWhole * kWhole);
  const int width = ct::assume_divisible<kWholeOut>((n + kWholeOut - 1) / kWholeOut * kWholeOut);
  auto left = tiles_of<Rows, Depth>(ct::assume_aligned<16>(a_), a_matrices, m, filled, ct::assume_divisible<kWhole>(a_lead),
                                    ct::assume_divisible<kWhole>(a_step));
  auto right = tiles_of<Columns, Depth>(ct::assume_aligned<16>(b_), b_matrices, n, filled,
                                        ct::assume_divisible<kWhole>(b_lead), ct::assume_divisible<kWhole>(b_step));
  const auto [row, column] = place_of_block<Rows, Columns>(m, n);
  const int matrix = ct::bid().y, a_matrix = matrix / a_repeat % a_matrices, b_matrix = matrix / b_repeat % b_matrices;

  auto sum = ct::full<ct::tile<Sum, ct::shape<Rows, Columns>>>(Sum(0));
  for (auto i : ct::irange(0, (k + Depth - 1) / Depth)) {
    auto rows = ct::reshape(left.load_masked(a_matrix, row, i), ct::shape<Rows, Depth>{});
    auto columns = ct::reshape(right.load_masked(b_matrix, column, i), ct::shape<Columns, Depth>{});
    sum = ct::mma(ct::element_cast<Factor>(rows), ct::transpose(ct::element_cast<Factor>(columns)), sum);
  }
  auto out = tiles_of<Rows, Columns>(ct::assume_aligned<16>(c_), batches, m, width, width,
                                     ct::assume_divisible<kWholeOut>(m * width));
  out.store_masked(ct::reshape(sum, ct::shape<1, Rows, Columns>{}), matrix, row, column);
}

}  // namespace pk
