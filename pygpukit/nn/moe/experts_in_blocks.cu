// experts_in_blocks.cu: products of rows that lie by experts with the weights of these, in blocks of few bits.
//
// A block of threads takes up to as many neighbouring rows of one expert as its kernel is high. A row has the same bits
// whatever that is.
#include "expert_rows.cuh"
#include "in_blocks.cuh"
#include "overlap.cuh"

namespace pk {

// call: of one expert's weight; size: of all.
template <class T, class Kind, int kTiles>
__global__ void __launch_bounds__(kThreads, kTiles == 1 ? 2 : 1)
    experts_in_blocks(const T *x, const int *counts, const Byte *w, T *out, int experts,
                      const __grid_constant__ BlocksCall call) {
  using S = Staged<Kind>;
  extern __shared__ uint4 staged[];
  __shared__ Parts<kTiles> parts;
  let_next_begin();
  await_previous();
  const ExpertRows own = find_rows(counts, experts, 8 * kTiles, blockIdx.y);
  if (!own.rows) return;
  Byte *const memory = reinterpret_cast<Byte *>(staged) + threadIdx.x / 32 * S::kWarp;
  Chunks<Kind, kStore> chunks(memory, w, call, own.expert * call.n);
#pragma unroll
  for (int i = 0; i < S::kStages; ++i) chunks.ask(i);
  const T *const none = nullptr;
  add_rows<Kind, kTiles>(chunks, memory, x + own.first * call.k, own.rows, none, out + own.first * call.n, call, parts);
}

}  // namespace pk
