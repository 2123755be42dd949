// lstm.cu: one time step of an LSTM after its two matrix products: gates i, f, g, o to the new cell and hidden state.
#include "numeric.cuh"

namespace pk {

struct LstmStep {
  long long batch, hidden;
  long long input_start, input_row;    // where this step's row of the input's gates is, and the next batch row's
  long long output_start, output_row;  // of the output
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

// from_input, from_state: the products (without biases) with the weights of x and of h; cell is updated in place.
template <class T>
__global__ void __launch_bounds__(256) lstm_cell(const T *from_input, const T *from_state, const T *bias, T *cell,
                                                 T *out, const __grid_constant__ LstmStep step) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= step.batch * step.hidden) return;
  const long long row = i / step.hidden, unit = i % step.hidden;
  T gate[4];
  for (int k = 0; k < 4; ++k) {
    const long long column = k * step.hidden + unit;
    gate[k] = from_input[step.input_start + row * step.input_row + column] +
              from_state[row * 4 * step.hidden + column] + bias[column];
  }
  const T next = sigmoid(gate[1]) * cell[i] + sigmoid(gate[0]) * hyperbolic_tangent(gate[2]);
  cell[i] = next;
  out[step.output_start + row * step.output_row + unit] = sigmoid(gate[3]) * hyperbolic_tangent(next);
}

}  // namespace pk
