// wide_in_blocks.cu: in_blocks.cu's products for many rows, with the same bits.
#include "overlap.cuh"
#include "wide_in_blocks.cuh"

namespace pk {

// 64 rows of x a block; blocks in y are further rows.
template <class T, class Out, class Kind, int kEpilogue>
__global__ void __launch_bounds__(kThreads)
    wide_linear_in_blocks(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ BlocksCall call) {
  extern __shared__ uint4 staged[];
  let_next_begin();
  await_previous();
  const long long first = static_cast<long long>(blockIdx.y) * kWideRows;
  const int rows = static_cast<int>(call.rows - first < kWideRows ? call.rows - first : kWideRows);
  add_wide_rows<Kind, 1, 2, kEpilogue>(reinterpret_cast<Byte *>(staged), x + first * call.k, rows, w, 0, bias,
                                       out + first * call.stride, call);
}

}  // namespace pk
