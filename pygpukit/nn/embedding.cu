// embedding.cu: the rows of tokens, and of positions where they are learned, as float; a thread for each element.
#include "numeric.cuh"

namespace pk {

struct EmbedCall {
  long long hidden;
  long long learned;  // whether positions have rows, too
};

template <class T>
__global__ void __launch_bounds__(256) embed(const int *tokens, const int *positions, const T *table, const T *learned,
                                             float *out, const __grid_constant__ EmbedCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long row = blockIdx.y;
  if (i >= call.hidden) return;
  float value = widen(table[tokens[row] * call.hidden + i]);
  if (call.learned) value += widen(learned[positions[row] * call.hidden + i]);
  out[row * call.hidden + i] = value;
}

}  // namespace pk
