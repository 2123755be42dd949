// rope.cu: rotary position embedding in place; a thread for each rotated pair of q, then of k.
#include "numeric.cuh"

namespace pk {

struct RopeHeads {
  long long start, heads;
  long long step[4];  // of batch, position, head and dimension, in elements
};

struct RopeCall {
  long long pairs_q, pairs;          // in q, in q and k together
  long long positions, half;         // half: pairs of a head
  long long first_apart, second_apart;  // elements from one pair to the next, and inside a pair
  long long table_row;               // elements of a table from one position to the next
  long long table_step, table_second;   // from one pair to the next, and from a pair's first to its second
  RopeHeads of[2];
};

template <class T, class Index>
__device__ __forceinline__ void rope_pair(T *data, const float *cos, const float *sin, const RopeCall &call,
                                          const RopeHeads &heads, Index i) {
  const Index half = static_cast<Index>(call.half), count = static_cast<Index>(heads.heads);
  const Index positions = static_cast<Index>(call.positions);
  const Index pair = i % half;
  Index above = i / half;
  const Index head = above % count;
  above /= count;
  const Index position = above % positions, batch = above / positions;
  T *first = data + heads.start + batch * heads.step[0] + position * heads.step[1] + head * heads.step[2] +
             pair * call.first_apart * heads.step[3];
  T *second = first + call.second_apart * heads.step[3];
  const long long at = position * call.table_row + pair * call.table_step;
  const float a = widen(*first), b = widen(*second);
  *first = convert<T>::from(a * cos[at] - b * sin[at]);
  *second = convert<T>::from(b * cos[at + call.table_second] + a * sin[at + call.table_second]);
}

template <class T>
__global__ void __launch_bounds__(256)
    rope(T *q, T *k, const float *cos, const float *sin, const __grid_constant__ RopeCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.pairs) return;
  const bool of_k = i >= call.pairs_q;
  const long long own = of_k ? i - call.pairs_q : i;
  if (call.pairs <= 0x7fffffffLL) {
    rope_pair(of_k ? k : q, cos, sin, call, call.of[of_k], static_cast<unsigned>(own));
  } else {
    rope_pair(of_k ? k : q, cos, sin, call, call.of[of_k], own);
  }
}

}  // namespace pk
