// experts.cu: what stands between the products of experts: their rows side by side, gated activations, weighted sums.
#include "linear.cuh"
#include "overlap.cuh"

namespace pk {

struct ExpertsCall {
  long long n;  // elements of a row of the result
  int chosen, has_bias, interleaved;
  int weighs_rows;            // whether weights multiply what experts get
  float limit, alpha, scale;  // limit: 0 for none
};

// Elements of a row that a thread makes.
template <class T>
__device__ __forceinline__ long long first_element() {
  return (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * per_load<T>();
}

// out[place] = x[the row that stands there], times its weight where that is so: the rows of each expert side by side.
// Blocks in y are places.
template <class T>
__global__ void __launch_bounds__(kThreads) gather_rows(const T *x, const int *sources, const float *weights, T *out,
                                                        const __grid_constant__ ExpertsCall call) {
  constexpr int kCount = per_load<T>();
  const long long n = first_element<T>(), place = blockIdx.y;
  let_next_begin();
  await_previous();
  if (n >= call.n) return;
  const int choice = sources[place];
  Pack<T, kCount> pack = load_pack<kCount>(x + choice / call.chosen * call.n + n);
  if (call.weighs_rows) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.v[i] = convert<T>::from(weights[choice] * widen(pack.v[i]));
  }
  store_pack<kCount>(out + place * call.n + n, pack);
}

// silu(gate) up, or of a limit min(gate, limit) sigmoid(alpha gate) (clamp(up) + 1).
__device__ __forceinline__ float gated(float gate, float up, const ExpertsCall &call) {
  if (call.limit == 0.0f) return gate / (1.0f + expf(-gate)) * up;
  gate = gate > call.limit ? call.limit : gate;
  up = up > call.limit ? call.limit : up < -call.limit ? -call.limit : up;
  return gate / (1.0f + expf(-call.alpha * gate)) * (up + 1.0f);
}

// out = gated(gate + bias, up + bias): gate and up are the halves of a row, or every other element of it.
template <class T>
__global__ void __launch_bounds__(kThreads)
    activate_experts(const T *products, const int *experts, const int *sources, const T *bias, T *out,
                     const __grid_constant__ ExpertsCall call) {
  constexpr int kCount = per_load<T>();
  const long long n = first_element<T>(), place = blockIdx.y;
  let_next_begin();
  await_previous();
  if (n >= call.n) return;
  const T *row = products + place * 2 * call.n;
  const T *added = call.has_bias ? bias + experts[sources[place]] * 2 * call.n : row;
  Pack<T, kCount> result;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const long long gate_at = call.interleaved ? 2 * (n + i) : n + i;
    const long long up_at = call.interleaved ? gate_at + 1 : call.n + n + i;
    float gate = widen(row[gate_at]), up = widen(row[up_at]);
    if (call.has_bias) gate += widen(added[gate_at]), up += widen(added[up_at]);
    result.v[i] = convert<T>::from(gated(gate, up, call));
  }
  store_pack<kCount>(out + place * call.n + n, result);
}

// x += scale (weight 0 (product 0 + bias) + weight 1 (...) + ...), a row's experts best first. Blocks in y are rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    combine(const T *products, const int *experts, const int *places, const float *weights, const T *bias, float *x,
            const __grid_constant__ ExpertsCall call) {
  constexpr int kCount = per_load<T>();
  const long long n = first_element<T>(), row = blockIdx.y;
  let_next_begin();
  await_previous();
  if (n >= call.n) return;
  float sum[kCount] = {};
  for (int j = 0; j < call.chosen; ++j) {
    const long long choice = row * call.chosen + j;
    const float weight = call.weighs_rows ? 1.0f : weights[choice];
    float value[kCount];
    widen_pack(load_pack<kCount>(products + places[choice] * call.n + n), value);
    const T *added = bias + (call.has_bias ? experts[choice] * call.n + n : 0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (call.has_bias) value[i] += widen(added[i]);
      sum[i] = fmaf(weight, value[i], sum[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) x[row * call.n + n + i] += call.scale * sum[i];
}

}  // namespace pk
