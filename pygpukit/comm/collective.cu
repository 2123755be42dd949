// collective.cu: collectives among the ranks of a group, over windows that the peers write; ranks are added in their
// order.
#include "operations.cuh"
#include "peers.cuh"

namespace pk {

enum Reduction { kSum, kMax, kMin };

// count: elements of a rank's part of the result. piece: elements that a channel moves to one rank in a round, as many
// as fill packs. send_step, step: from what goes to one rank to what goes to the next, and from what comes from one to
// what comes from the next; 0: all the same. root: the only rank that sends, -1 for all. call: its ticket.
struct Collective {
  long long count, piece, send_step, step;
  int reduction, root;
  unsigned call, reserved;
};

template <class A>
struct Ordered {
  static constexpr bool kYes = true;
};
template <class R>
struct Ordered<complex_t<R>> {
  static constexpr bool kYes = false;
};

template <class A>
__device__ __forceinline__ A combine(int reduction, A a, A b) {
  if constexpr (Ordered<A>::kYes) {
    if (reduction == kMax) return maximum(a, b);
    if (reduction == kMin) return minimum(a, b);
  }
  return exact::add(a, b);
}

// One pack of every rank, combined in the order of ranks: `own` is this rank's, the others' are `at` elements into
// their parts.
template <class T>
__device__ __forceinline__ Packed<T> combined(const Peers &p, unsigned round, const Packed<T> &own, long long at,
                                              int reduction) {
  compute_t<T> sums[kPack<T>];
  for (int rank = 0; rank < p.size; ++rank) {
    const Packed<T> pack = rank == p.rank ? own : take_part(part_of<T>(p, p.rank, round, rank) + at);
    for (int k = 0; k < kPack<T>; ++k)
      sums[k] = rank == 0 ? widen(pack.v[k]) : combine(reduction, sums[k], widen(pack.v[k]));
  }
  Packed<T> result;
  for (int k = 0; k < kPack<T>; ++k) result.v[k] = convert<T>::from(sums[k]);
  return result;
}

// The pieces from `begin` on, `send_step` apart, to the parts of their ranks.
template <class T>
__device__ __forceinline__ void push(const Peers &p, const Collective &c, const T *in, long long begin, long long end,
                                     unsigned round) {
  for (long long i = begin + threadIdx.x * kPack<T>; i < end; i += blockDim.x * kPack<T>) {
    Packed<T> pack;
    for (int k = 1; k < p.size; ++k) {
      const int peer = p.rank + k < p.size ? p.rank + k : p.rank + k - p.size;
      if (k == 1 || c.send_step) pack = take(in + peer * c.send_step + i, end - i);
      store(part_of<T>(p, peer, round, p.rank) + (i - begin), pack);
    }
  }
}

// Where the combined elements go: into an array, or onto one of float32, added there. Both see them in the elements'
// type, as ranks send them in two shots.
template <class T>
struct Into {
  T *out;
  __device__ __forceinline__ void take(long long i, const Packed<T> &pack, long long valid) const {
    give(out + i, pack, valid);
  }
};
template <class T>
struct Onto {
  float *out;
  __device__ __forceinline__ void take(long long i, const Packed<T> &pack, long long valid) const {
    constexpr int kWide = kPack<float>;
    float *to = out + i;
    if (valid >= kPack<T> && aligned<kWide>(to)) {
      for (int k = 0; k < kPack<T>; k += kWide) {
        Packed<float> sums = load<kWide>(to + k);
        for (int j = 0; j < kWide; ++j) sums.v[j] += widen(pack.v[k + j]);
        store(to + k, sums);
      }
      return;
    }
    for (int k = 0; k < kPack<T> && k < valid; ++k) to[k] += widen(pack.v[k]);
  }
};

// One shot: everybody sends to everybody, and each combines for itself. All-reduce with send_step 0, reduce-scatter
// with the step of its parts.
template <class T, class To>
__device__ __forceinline__ void once(const T *in, const To &to, const Peers &p, const Collective &c) {
  unsigned *rounds = window(p, p.rank)->rounds + blockIdx.x, round = *rounds;
  long long begin = blockIdx.x * c.piece;
  const T *own = in + p.rank * c.send_step;
  do {
    ++round;
    const long long end = begin + c.piece < c.count ? begin + c.piece : c.count;
    push(p, c, in, begin, end, round);
    if (!meet(p, round, c.call)) break;
    for (long long i = begin + threadIdx.x * kPack<T>; i < end; i += blockDim.x * kPack<T>)
      to.take(i, combined(p, round, take(own + i, end - i), i - begin, c.reduction), end - i);
    begin += gridDim.x * c.piece;
  } while (begin < c.count);
  if (threadIdx.x == 0) *rounds = round;
}

// Two shots: each rank combines one piece of as many as there are ranks, and sends it to all others.
template <class T, class To>
__device__ __forceinline__ void twice(const T *in, const To &to, const Peers &p, const Collective &c) {
  unsigned *rounds = window(p, p.rank)->rounds + blockIdx.x, round = *rounds;
  long long begin = blockIdx.x * c.piece * p.size;
  do {
    ++round;
    for (int k = 1; k < p.size; ++k) {
      const int peer = p.rank + k < p.size ? p.rank + k : p.rank + k - p.size;
      const long long first = begin + peer * c.piece, rest = c.count - first;
      for (long long i = threadIdx.x * kPack<T>; i < c.piece && i < rest; i += blockDim.x * kPack<T>)
        store(part_of<T>(p, peer, round, p.rank) + i, take(in + first + i, rest - i));
    }
    if (!meet(p, round, c.call)) break;
    const long long first = begin + p.rank * c.piece, rest = c.count - first;
    for (long long i = threadIdx.x * kPack<T>; i < c.piece && i < rest; i += blockDim.x * kPack<T>) {
      const Packed<T> pack = combined(p, round, take(in + first + i, rest - i), i, c.reduction);
      to.take(first + i, pack, rest - i);
      for (int rank = 0; rank < p.size; ++rank)
        if (rank != p.rank) store(part_of<T>(p, rank, round + 1, p.rank) + i, pack);
    }
    if (!meet(p, ++round, c.call)) break;
    for (int rank = 0; rank < p.size; ++rank) {
      if (rank == p.rank) continue;
      const long long first = begin + rank * c.piece, rest = c.count - first;
      for (long long i = threadIdx.x * kPack<T>; i < c.piece && i < rest; i += blockDim.x * kPack<T>)
        to.take(first + i, take_part(part_of<T>(p, p.rank, round, rank) + i), rest - i);
    }
    begin += gridDim.x * c.piece * p.size;
  } while (begin < c.count);
  if (threadIdx.x == 0) *rounds = round;
}

template <class T>
__global__ void __launch_bounds__(512)
    reduce_once(const T *in, T *out, const __grid_constant__ Peers p, const __grid_constant__ Collective c) {
  once(in, Into<T>{out}, p, c);
}
template <class T>
__global__ void __launch_bounds__(512)
    reduce_twice(const T *in, T *out, const __grid_constant__ Peers p, const __grid_constant__ Collective c) {
  twice(in, Into<T>{out}, p, c);
}
template <class T>
__global__ void __launch_bounds__(512)
    add_once(const T *in, float *out, const __grid_constant__ Peers p, const __grid_constant__ Collective c) {
  once(in, Onto<T>{out}, p, c);
}
template <class T>
__global__ void __launch_bounds__(512)
    add_twice(const T *in, float *out, const __grid_constant__ Peers p, const __grid_constant__ Collective c) {
  twice(in, Onto<T>{out}, p, c);
}

// All-gather, broadcast, all-to-all, and the barrier, which moves nothing.
template <class T>
__global__ void __launch_bounds__(512)
    exchange(const T *in, T *out, const __grid_constant__ Peers p, const __grid_constant__ Collective c) {
  unsigned *rounds = window(p, p.rank)->rounds + blockIdx.x, round = *rounds;
  long long begin = blockIdx.x * c.piece;
  do {
    ++round;
    const long long end = begin + c.piece < c.count ? begin + c.piece : c.count;
    if (c.root < 0 || c.root == p.rank) push(p, c, in, begin, end, round);
    if (!meet(p, round, c.call)) break;
    for (int rank = 0; rank < p.size; ++rank) {
      if (c.root >= 0 && c.root != rank) continue;
      const T *own = in + rank * c.send_step, *part = part_of<T>(p, p.rank, round, rank);
      for (long long i = begin + threadIdx.x * kPack<T>; i < end; i += blockDim.x * kPack<T>)
        give(out + rank * c.step + i, rank == p.rank ? take(own + i, end - i) : take_part(part + (i - begin)), end - i);
    }
    begin += gridDim.x * c.piece;
  } while (begin < c.count);
  if (threadIdx.x == 0) *rounds = round;
}

}  // namespace pk
