// persistent.cu: all time steps of an LSTM in one launch. A cluster of 8 blocks has some sequences of one direction;
// each block keeps the weights of its units in registers, and sends their new states to the others' shared memory.
//
// It cannot hang, however few of its blocks are resident: a block waits for blocks of its own cluster only, and a
// device starts the blocks of a cluster together or not at all; where it never could, the launch fails. Clusters share
// nothing and run in any order. All 8 blocks pass the same barriers: one before the first step and one after each, as
// many as the longest of the cluster's sequences has steps; nobody leaves early, so no state is sent to a block that
// has ended.
#include "lstm.cuh"

namespace pk {

constexpr int kBlocks = 8;    // of a cluster
constexpr int kWarps = 16;    // of a block
constexpr int kTogether = 8;  // sequences of a cluster, at most
constexpr int kGates = 4;

// Sums of V values over the lanes of a warp, each in the tree that lstm.cuh names: lane l gets that of value l V / 32.
template <int V, int Lanes = 16>
__device__ __forceinline__ float folded(float (&values)[V], int lane) {
  if constexpr (V == 1) {
    float sum = values[0];
#pragma unroll
    for (int lanes = Lanes; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    return sum;
  } else {
    const bool upper = (lane & Lanes) != 0;
    float half[V / 2];
#pragma unroll
    for (int i = 0; i < V / 2; ++i) {
      const float sent = upper ? values[i] : values[i + V / 2], kept = upper ? values[i + V / 2] : values[i];
      half[i] = kept + __shfl_xor_sync(0xffffffffu, sent, Lanes);
    }
    return folded<V / 2, Lanes / 2>(half, lane);
  }
}

// As lstm_step(), for float. Units: of a warp. Each: elements of a state that a lane has; 32 Each >= hidden. Grid:
// kBlocks, groups of p.together sequences, directions.
template <int Units, int Each>
__global__ void __launch_bounds__(32 * kWarps)
    lstm_persistent(const float *products, const float *first, const float *forward, const float *backward,
                    const float *bias, float *cell, float *last, float *out, const long long *spans,
                    const __grid_constant__ Lstm p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int V = Units * kGates, kWidth = 32 * Each;
  __shared__ float states[2][kTogether][kWidth];  // of all units: before a step, and after it
  __shared__ long long starts[kTogether], lengths[kTogether];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long hidden = p.hidden, direction = blockIdx.z, row = p.directions * hidden;
  const bool back = runs_back(p, direction);
  const long long sequence0 = blockIdx.y * p.together;
  const int count = static_cast<int>(p.sequences - sequence0 < p.together ? p.sequences - sequence0 : p.together);

  // The weights of the warp's units; beyond the last unit and the last element they are zero.
  const int unit0 = (blockIdx.x * kWarps + warp) * Units;
  const float *matrix = direction == 1 ? backward : forward;
  float weight[V][Each];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const int unit = unit0 + v / kGates;
#pragma unroll
    for (int e = 0; e < Each; ++e) {
      const int i = lane + 32 * e;
      weight[v][e] = unit < hidden && i < hidden ? matrix[(v % kGates * hidden + unit) * hidden + i] : 0.0f;
    }
  }
  // What this lane makes of a sum: the gate of a unit. Lanes apart by fewer than 32 / V make the same.
  const int own = lane / (32 / V), gate = own % kGates, unit = unit0 + own / kGates;
  const bool there = unit < hidden;
  const float shift = there ? bias[direction * kGates * hidden + gate * hidden + unit] : 0.0f;
  const int leader = lane / (32 / Units) * (32 / Units);  // the first lane of those that have this lane's unit
  const int rank = lane - leader;                         // the block to which this lane sends the unit's state

  for (int s = threadIdx.x; s < count; s += blockDim.x) {
    starts[s] = first_of(p, spans, sequence0 + s);
    lengths[s] = length_of(p, spans, sequence0 + s);
  }
  for (int i = threadIdx.x; i < kTogether * kWidth; i += blockDim.x) {
    const int s = i / kWidth, at = i % kWidth;
    const bool some = s < count && at < hidden;
    states[0][s][at] = some ? first[(direction * p.sequences + sequence0 + s) * hidden + at] : 0.0f;
    states[1][s][at] = 0.0f;
  }
  float memory[kTogether], coming[kTogether];
#pragma unroll
  for (int s = 0; s < kTogether; ++s) {
    memory[s] = s < count && there ? cell[(direction * p.sequences + sequence0 + s) * hidden + unit] : 0.0f;
  }
  __cluster_barrier_arrive();
  __cluster_barrier_wait();

  // The product with x that this lane adds at a step of a sequence; it is read a step ahead.
  const auto read = [&](int s, long long number) {
    const long long place = starts[s] + (back ? lengths[s] - 1 - number : number);
    const bool some = there && number < lengths[s];
    return some ? products[(direction * p.rows + place) * kGates * hidden + gate * hidden + unit] : 0.0f;
  };
  long long longest = 0;
#pragma unroll
  for (int s = 0; s < kTogether; ++s) {
    if (s < count) {
      coming[s] = read(s, 0);
      longest = longest < lengths[s] ? lengths[s] : longest;
    }
  }
  for (long long number = 0; number < longest; ++number) {
    const int now = number % 2;
#pragma unroll
    for (int s = 0; s < kTogether; ++s) {
      if (s < count && number < lengths[s]) {  // the whole cluster
        const float input = coming[s];
        coming[s] = read(s, number + 1);
        float sum[V] = {};
#pragma unroll
        for (int e = 0; e < Each; ++e) {
          const float state = states[now][s][lane + 32 * e];
#pragma unroll
          for (int v = 0; v < V; ++v) sum[v] = multiply_add(state, weight[v][e], sum[v]);
        }
        const float value = input + folded<V>(sum, lane) + shift;
        const float open = gate == 2 ? hyperbolic_tangent(value) : sigmoid(value);
        float gates[kGates];
#pragma unroll
        for (int k = 0; k < kGates; ++k) gates[k] = __shfl_sync(0xffffffffu, open, leader + k * (32 / V));
        const float next = multiply_add(gates[1], memory[s], gates[0] * gates[2]);
        const float state = gates[3] * hyperbolic_tangent(next);
        memory[s] = next;
        if (there && rank < kBlocks) {
          *static_cast<float *>(__cluster_map_shared_rank(&states[1 - now][s][unit], rank)) = state;
        }
        if (there && rank == 0) {
          const long long one = (direction * p.sequences + sequence0 + s) * hidden + unit;
          out[(starts[s] + (back ? lengths[s] - 1 - number : number)) * row + direction * hidden + unit] = state;
          if (number == lengths[s] - 1) {
            last[one] = state;
            cell[one] = next;
          }
        }
      }
    }
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
  }
#endif
}

}  // namespace pk
