// lstm.cu: one time step of an LSTM in one or both directions: the product with the hidden state, the gates i, f, g, o,
// and the new cell and hidden state. A warp makes a unit: its 4 rows of the weight stay coalesced.
#include "lstm.cuh"

namespace pk {

// products: the products (without biases) with the weight of x, (directions, rows, 4 hidden). first: the hidden state
// before the first step, (directions, sequences, hidden). forward, backward: weights of each direction, (4 hidden,
// hidden). bias: (directions, 4 hidden). cell: as first, updated in place. last: as first, written at a sequence's last
// step. out: (rows, directions hidden). spans: (sequences, 2), first row and length. Grid: sequences, blocks of units,
// directions.
template <class T>
__global__ void __launch_bounds__(128)
    lstm_step(const T *products, const T *first, const T *forward, const T *backward, const T *bias, T *cell, T *last,
              T *out, const long long *spans, const __grid_constant__ Lstm p) {
  const long long hidden = p.hidden, sequence = blockIdx.x, direction = blockIdx.z;
  const long long unit = static_cast<long long>(blockIdx.y) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const long long length = length_of(p, spans, sequence);
  if (unit >= hidden || p.number >= length) return;  // the whole warp
  const bool back = runs_back(p, direction);
  const long long place = first_of(p, spans, sequence) + (back ? length - 1 - p.number : p.number);
  const long long one = direction * p.sequences + sequence, row = p.directions * hidden;
  T *now = out + place * row + direction * hidden;
  const T *before = p.number == 0 ? first + one * hidden : now + (back ? row : -row);
  const T *weight = (direction == 1 ? backward : forward) + unit * hidden;
  T sum[4] = {};
#pragma unroll 4
  for (long long i = lane; i < hidden; i += 32) {
    const T state = before[i];
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] = multiply_add(state, weight[k * hidden * hidden + i], sum[k]);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], lanes);
  }
  if (lane != 0) return;
  const T *input = products + (direction * p.rows + place) * 4 * hidden + unit;
  const T *shift = bias + direction * 4 * hidden + unit;
  T gate[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) gate[k] = input[k * hidden] + sum[k] + shift[k * hidden];
  T *memory = cell + one * hidden + unit;
  const T next = multiply_add(sigmoid(gate[1]), *memory, sigmoid(gate[0]) * hyperbolic_tangent(gate[2]));
  const T state = sigmoid(gate[3]) * hyperbolic_tangent(next);
  *memory = next;
  now[unit] = state;
  if (p.number == length - 1) last[one * hidden + unit] = state;
}

}  // namespace pk
