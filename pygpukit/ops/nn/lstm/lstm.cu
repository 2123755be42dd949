// lstm.cu: one time step of an LSTM in one or both directions: the product with the hidden state, the gates i, f, g, o,
// and the new cell and hidden state. A warp makes a unit: its 4 rows of the weight stay coalesced.
//
// A sum over H has 32 partial sums, one a lane, of the elements lane, lane + 32, ..., which are added in a fixed tree:
// a sequence has the same bits whatever is computed with it.
#include "numeric.cuh"

namespace pk {

struct LstmStep {
  long long batch, hidden, steps, directions;
  long long number;   // of the step, in the order in which they are computed
  long long reverse;  // of the only direction; of two, the second is
};

template <class R>
__device__ __forceinline__ R sigmoid(R x) {
  if constexpr (sizeof(R) == 8) return R(1) / (R(1) + ::exp(-x));
  return R(1) / (R(1) + ::expf(-x));
}
template <class R>
__device__ __forceinline__ R hyperbolic_tangent(R x) {
  if constexpr (sizeof(R) == 8) return ::tanh(x);
  return ::tanhf(x);
}

// given: the products (without biases) with the weight of x, (directions, batch, steps, 4 hidden). first: the hidden
// state before the first step, (directions, batch, hidden). forward, backward: weights of each direction, (4 hidden,
// hidden). bias: (directions, 4 hidden). cell: as first, updated in place. out: (batch, steps, directions hidden).
// Grid: batch, blocks of units, directions.
template <class T>
__global__ void __launch_bounds__(128) lstm_step(const T *given, const T *first, const T *forward, const T *backward,
                                                 const T *bias, T *cell, T *out, const __grid_constant__ LstmStep p) {
  const long long hidden = p.hidden, sequence = blockIdx.x, direction = blockIdx.z;
  const long long unit = static_cast<long long>(blockIdx.y) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (unit >= hidden) return;  // the whole warp
  const bool back = p.directions == 2 ? direction == 1 : p.reverse != 0;
  const long long step = back ? p.steps - 1 - p.number : p.number;
  const long long one = direction * p.batch + sequence, row = p.directions * hidden;
  T *now = out + (sequence * p.steps + step) * row + direction * hidden;
  const T *before = p.number == 0 ? first + one * hidden : now + (back ? row : -row);
  const T *weight = (direction == 1 ? backward : forward) + unit * hidden;
  T sum[4] = {};
#pragma unroll 4
  for (long long i = lane; i < hidden; i += 32) {
    const T state = before[i];
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] += state * weight[k * hidden * hidden + i];
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], lanes);
  }
  if (lane != 0) return;
  const T *input = given + (one * p.steps + step) * 4 * hidden + unit, *shift = bias + direction * 4 * hidden + unit;
  T gate[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) gate[k] = input[k * hidden] + sum[k] + shift[k * hidden];
  T *memory = cell + one * hidden + unit;
  const T next = sigmoid(gate[1]) * *memory + sigmoid(gate[0]) * hyperbolic_tangent(gate[2]);
  *memory = next;
  now[unit] = sigmoid(gate[3]) * hyperbolic_tangent(next);
}

}  // namespace pk
