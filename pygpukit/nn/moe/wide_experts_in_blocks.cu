// wide_experts_in_blocks.cu: experts_in_blocks.cu's products for many rows of an expert, with the same bits.
#include "expert_rows.cuh"
#include "overlap.cuh"
#include "wide_in_blocks.cuh"

namespace pk {

// call: of one expert's weight; size: of all.
template <class T, class Kind, int kStages>
__global__ void __launch_bounds__(kThreads)
    wide_experts_in_blocks(const T *x, const int *counts, const Byte *w, T *out, int experts,
                           const __grid_constant__ BlocksCall call) {
  extern __shared__ uint4 staged[];
  let_next_begin();
  await_previous();
  const ExpertRows own = find_rows(counts, experts, kWideRows, blockIdx.y);
  if (!own.rows) return;
  const T *const none = nullptr;
  add_wide_rows<Kind, 2, kStages, kStore>(reinterpret_cast<Byte *>(staged), x + own.first * call.k, own.rows, w,
                                          own.expert * call.n, none, out + own.first * call.n, call);
}

}  // namespace pk
