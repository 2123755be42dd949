// products.cu: matrix products by an atom of CuTe's: C[m][n] = sum over k of A[m][k] B[n][k].
#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>
using namespace cute;

// Operands by ordinary loads, one tile of 64 x 64 a block, every dimension a multiple of the tile's.
template <class Atom, int K, class T, class Sum, class Warps = Layout<Shape<_2, _2>>>
__device__ void plain(const T *a, const T *b, Sum *c, int m, int n, int k, Warps warps = {}) {
  auto product = make_tiled_mma(Atom{}, warps);
  auto mine = product.get_slice(threadIdx.x);
  auto of = [&](auto p, int rows, int columns) {
    return make_tensor(make_gmem_ptr(p), make_shape(rows, columns), make_stride(columns, _1{}));
  };
  auto at = make_coord(blockIdx.y, blockIdx.x, _);
  auto shape = Shape<_64, _64, Int<K>>{};
  auto left = local_tile(of(a, m, k), shape, at, Step<_1, X, _1>{});
  auto right = local_tile(of(b, n, k), shape, at, Step<X, _1, _1>{});
  auto to = mine.partition_C(local_tile(of(c, m, n), shape, at, Step<_1, _1, X>{}));
  auto sums = product.make_fragment_C(to);
  clear(sums);
  for (int step = 0; step < size<2>(left); ++step) {
    auto from = mine.partition_A(left(_, _, step));
    auto with = mine.partition_B(right(_, _, step));
    auto x = mine.make_fragment_A(from);
    auto y = mine.make_fragment_B(with);
    copy(from, x);
    copy(with, y);
    gemm(product, sums, x, y, sums);
  }
  copy(sums, to);
}
