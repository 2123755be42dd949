// pair.cu: a send and its receive, which wait for each other whatever the size.
#include "complex.cuh"
#include "peers.cuh"

namespace pk {

// count: elements. piece: those that a channel moves in a round, as many as fill packs. peer: the other rank. call: its
// ticket.
struct Pair {
  long long count, piece;
  int peer;
  unsigned call;
};

// All threads of the block wait for what thread 0 waits for.
__device__ inline bool await_together(const Peers &p, int peer, Place place, unsigned long long ticket) {
  return __syncthreads_and(threadIdx.x != 0 || await(p, peer, place, ticket)) != 0;
}

// After what all threads of the block did before.
__device__ inline void post_together(Place place, unsigned long long ticket) {
  __syncthreads();
  if (threadIdx.x == 0) post(place, ticket);
}

// A part is written again once the round before the last has its receipt; what a launch sent has one when it ends.
template <class T>
__global__ void __launch_bounds__(512)
    send(const T *in, const __grid_constant__ Peers p, const __grid_constant__ Pair c) {
  Window *own = window(p, p.rank), *theirs = window(p, c.peer);
  unsigned *rounds = &own->sent[blockIdx.x][c.peer], round = *rounds;
  const unsigned first = round + 1;
  const auto receipt = [&](unsigned of) -> Place { return &own->receipts[of & 1][blockIdx.x][c.peer]; };
  const auto ticket = [&](unsigned of) { return static_cast<unsigned long long>(of) << 32 | c.call; };
  long long begin = blockIdx.x * c.piece;
  bool here = true;
  do {
    ++round;
    if (round - first >= 2) here = await_together(p, c.peer, receipt(round - 2), ticket(round - 2));
    if (!here) break;
    const long long end = begin + c.piece < c.count ? begin + c.piece : c.count;
    T *part = pair_part_of<T>(p, c.peer, round, p.rank);
    for (long long i = begin + threadIdx.x * kPack<T>; i < end; i += blockDim.x * kPack<T>)
      store(part + (i - begin), take(in + i, end - i));
    post_together(&theirs->posts[round & 1][blockIdx.x][p.rank], ticket(round));
    begin += gridDim.x * c.piece;
  } while (begin < c.count);
  if (here) await_together(p, c.peer, receipt(round), ticket(round));
  if (threadIdx.x == 0) *rounds = round;
}

template <class T>
__global__ void __launch_bounds__(512)
    receive(T *out, const __grid_constant__ Peers p, const __grid_constant__ Pair c) {
  Window *own = window(p, p.rank), *theirs = window(p, c.peer);
  unsigned *rounds = &own->received[blockIdx.x][c.peer], round = *rounds;
  long long begin = blockIdx.x * c.piece;
  do {
    ++round;
    const unsigned long long ticket = static_cast<unsigned long long>(round) << 32 | c.call;
    if (!await_together(p, c.peer, &own->posts[round & 1][blockIdx.x][c.peer], ticket)) break;
    const long long end = begin + c.piece < c.count ? begin + c.piece : c.count;
    const T *part = pair_part_of<T>(p, p.rank, round, c.peer);
    for (long long i = begin + threadIdx.x * kPack<T>; i < end; i += blockDim.x * kPack<T>)
      give(out + i, take_part(part + (i - begin)), end - i);
    post_together(&theirs->receipts[round & 1][blockIdx.x][p.rank], ticket);
    begin += gridDim.x * c.piece;
  } while (begin < c.count);
  if (threadIdx.x == 0) *rounds = round;
}

}  // namespace pk
