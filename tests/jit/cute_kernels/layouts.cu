// layouts.cu: what CuTe's layout algebra maps coordinates to.
#include <cute/tensor.hpp>
using namespace cute;

template <class L>
__device__ void offsets(L layout, int *out) {
  for (int i = threadIdx.x; i < size(layout); i += blockDim.x) out[i] = layout(i);
}

extern "C" __global__ void composed(int *out) {  // every third of the first twelve columns of a row-major 8 x 16
  auto whole = make_layout(Shape<_8, _16>{}, GenRowMajor{});
  offsets(composition(whole, make_layout(Shape<_4>{}, Stride<_24>{})), out);
}
extern "C" __global__ void divided(int *out) { offsets(zipped_divide(Layout<Shape<_12, _8>>{}, Shape<_4, _2>{}), out); }
extern "C" __global__ void product(int *out) {
  offsets(blocked_product(Layout<Shape<_2, _4>, Stride<_4, _1>>{}, Layout<Shape<_3, _2>>{}), out);
}
extern "C" __global__ void complemented(int *out) {
  offsets(complement(Layout<Shape<_2, _4>, Stride<_1, _8>>{}, Int<64>{}), out);
}
extern "C" __global__ void inverted(int *out) { offsets(right_inverse(Layout<Shape<_4, _8>, Stride<_8, _1>>{}), out); }
extern "C" __global__ void dynamic(int m, int n, int *out) {
  offsets(make_layout(make_shape(m, n), make_stride(n, _1{})), out);
}
extern "C" __global__ void swizzled(int *out) {
  offsets(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}), out);
}
extern "C" __global__ void coordinates(int *out) {  // of a thread's part of a tile, by an identity tensor
  auto tile = local_partition(make_identity_tensor(Shape<_8, _12>{}), Layout<Shape<_4, _2>>{}, threadIdx.x);
  for (int i = 0; i < size(tile); ++i) {
    out[(threadIdx.x * size(tile) + i) * 2] = get<0>(tile(i));
    out[(threadIdx.x * size(tile) + i) * 2 + 1] = get<1>(tile(i));
  }
}
