// query_growth.cu: queries multiplied by what grows with their position (Llama 4's layers without rotation).
#include "rows.cuh"

namespace pk {

struct GrowthCall {
  long long queries, width;  // elements of a row's queries, and of the row
  float growth, floor;
};

// Blocks in y are rows.
template <class T>
__global__ void __launch_bounds__(256)
    grow_queries(T *qkv, const int *positions, const __grid_constant__ GrowthCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x, row = blockIdx.y;
  if (i >= call.queries) return;
  const float steps = floorf((static_cast<float>(positions[row]) + 1.0f) / call.floor);
  T *query = qkv + row * call.width + i;
  *query = convert<T>::from(widen(*query) * (log1pf(steps) * call.growth + 1.0f));
}

}  // namespace pk
