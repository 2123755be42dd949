// bias.cu: gelu(y + bias) over the rows of a matrix, in place, computed in float32 or wider.
#include "numeric.cuh"

namespace pk {

template <class R>
__device__ __forceinline__ R gelu(R x) {  // by tanh
  const R inner = R(0.7978845608028654) * (x + R(0.044715) * x * x * x);
  if constexpr (sizeof(R) == 8) return R(0.5) * x * (R(1) + ::tanh(inner));
  return R(0.5) * x * (R(1) + ::tanhf(inner));
}

template <class T>
__global__ void __launch_bounds__(256) bias_gelu(T *y, const T *bias, long long size, long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const long long column = size <= 0x7fffffffLL ? static_cast<unsigned>(i) % static_cast<unsigned>(columns) : i % columns;
  y[i] = convert<T>::from(gelu(widen(y[i]) + widen(bias[column])));
}

}  // namespace pk
