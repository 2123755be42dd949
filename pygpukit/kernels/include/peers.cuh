// peers.cuh: how the ranks of a group meet: tickets and parts in windows, memory that every rank may write.
//
// A block of the grid is a channel. It exchanges with the blocks of its number at the other ranks and with no others,
// so that the blocks of a launch need not be resident together. The rounds of a channel are counted in the rank's own
// window, so that a launch of a graph goes on where the last one ended. Of tickets and parts there are two, used in
// turn: who writes the first again has seen everybody in the second round, and so past reading the first.
#pragma once
#include "pack.cuh"

namespace pk {

constexpr int kMaxRanks = 64;
constexpr int kChannels = 128;
constexpr int kPairChannels = 16;  // of a send and its receive

// One rank's view of its group.
struct Peers {
  unsigned long long windows[kMaxRanks];  // addresses, by rank
  unsigned long long board;     // address in pinned memory of the host: kFields words, then as many for each rank
  unsigned long long limit_ns;  // how long a rank waits for another one
  long long part_bytes;
  int rank, size;
};

// A ticket's upper half is the round. Its lower half says which call of the rank it is, by number and kind.
struct Window {
  unsigned failed, reserved[63];
  unsigned rounds[kChannels];
  unsigned sent[kPairChannels][kMaxRanks], received[kPairChannels][kMaxRanks];  // rounds, by the other rank
  // By parity, channel and the rank that writes: of collectives; of senders to this rank; of receivers from it.
  unsigned long long tickets[2][kChannels][kMaxRanks];
  unsigned long long posts[2][kPairChannels][kMaxRanks], receipts[2][kPairChannels][kMaxRanks];
};

// The words of a rank on the board: state, why it failed, for which peer it waited, its own ticket and the peer's.
constexpr int kFields = 8;
enum Failure : unsigned { kLate = 1, kOtherCall = 2 };

static_assert(sizeof(Window) % 128 == 0, "parts begin at multiples of a line");
constexpr unsigned kKind = 0xffffu;  // bits of a ticket
constexpr unsigned kSpins = 1024;    // looks at a ticket before the first, and from one to the next look at the board

__device__ __forceinline__ Window *window(const Peers &peers, int rank) {
  return reinterpret_cast<Window *>(peers.windows[rank]);
}

// Where rank `from` writes, and rank `owner` reads, in a round.
using Place = unsigned long long *;
__device__ __forceinline__ Place ticket_of(const Peers &peers, int owner, unsigned round, int from) {
  return &window(peers, owner)->tickets[round & 1][blockIdx.x][from];
}
template <class T>
__device__ __forceinline__ T *part_of(const Peers &peers, int owner, unsigned round, int from) {
  const long long number = (static_cast<long long>(round & 1) * kChannels + blockIdx.x) * peers.size + from;
  return reinterpret_cast<T *>(peers.windows[owner] + sizeof(Window) + number * peers.part_bytes);
}
// The parts of sends and receives lie behind those of collectives.
template <class T>
__device__ __forceinline__ T *pair_part_of(const Peers &peers, int owner, unsigned round, int from) {
  const long long block = 2 * kChannels + (round & 1) * kPairChannels + blockIdx.x;
  const long long number = block * peers.size + from;
  return reinterpret_cast<T *>(peers.windows[owner] + sizeof(Window) + number * peers.part_bytes);
}

__device__ __forceinline__ unsigned long long timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The rank's first failure goes to the board, where all ranks and the host see it.
__device__ inline void fail(const Peers &peers, Failure why, int peer, unsigned long long own,
                            unsigned long long seen) {
  if (atomicCAS(&window(peers, peers.rank)->failed, 0u, 1u) != 0) return;
  volatile unsigned *board = reinterpret_cast<unsigned *>(peers.board), *words = board + kFields * (1 + peers.rank);
  words[1] = why;
  words[2] = static_cast<unsigned>(peer);
  words[3] = static_cast<unsigned>(own);
  words[4] = static_cast<unsigned>(seen);
  __threadfence_system();
  words[0] = 1;
  board[0] = 1;
}

// What the block wrote before a ticket is seen by who has taken the ticket.
__device__ __forceinline__ void post(Place place, unsigned long long ticket) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(place), "l"(ticket) : "memory");
}
__device__ __forceinline__ unsigned long long posted(Place place) {
  unsigned long long seen;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(place) : "memory");
  return seen;
}

// False when the group has failed, by this wait or another one. The board is in the host's memory, where the looks of
// many blocks take 50 us: who waits for long looks there now and then.
__device__ inline bool await(const Peers &peers, int peer, Place place, unsigned long long ticket) {
  const unsigned round = static_cast<unsigned>(ticket >> 32);
  unsigned long long start = 0;
  for (unsigned spins = 1;; ++spins) {
    const unsigned long long seen = posted(place);
    if (seen >> 32 == round) {
      if (((seen ^ ticket) & kKind) == 0) return true;
      fail(peers, kOtherCall, peer, ticket, seen);
      return false;
    }
    if (spins > kSpins) __nanosleep(32);
    if (spins % kSpins != 0) continue;
    if (*reinterpret_cast<volatile unsigned *>(peers.board) != 0) return false;
    const unsigned long long now = timer_ns();
    if (start == 0) start = now;
    if (now - start > peers.limit_ns) {
      fail(peers, kLate, peer, ticket, 0);
      return false;
    }
  }
}

// What the block wrote before is what the peers see after it, and the other way round. False when the group has failed.
// call: the ticket without its round.
__device__ inline bool meet(const Peers &peers, unsigned round, unsigned call) {
  const unsigned long long ticket = static_cast<unsigned long long>(round) << 32 | call;
  const int peer = threadIdx.x;
  bool here = true;
  __syncthreads();
  if (peer < peers.size && peer != peers.rank) {
    post(ticket_of(peers, peer, round, peers.rank), ticket);
    here = await(peers, peer, ticket_of(peers, peers.rank, round, peer), ticket);
  }
  return __syncthreads_and(here) != 0;
}

// ---- packs of 16 bytes, of which the first `valid` elements count; arrays may begin anywhere, parts are aligned ----

template <class T>
constexpr int kPack = sizeof(T) < 16 ? 16 / static_cast<int>(sizeof(T)) : 1;

template <class T>
using Packed = Pack<T, kPack<T>>;

template <class T>
__device__ __forceinline__ Packed<T> take(const T *from, long long valid) {
  if (valid >= kPack<T> && aligned<kPack<T>>(from)) return load<kPack<T>>(from);
  Packed<T> pack;
  for (int k = 0; k < kPack<T>; ++k) pack.v[k] = from[k < valid ? k : 0];
  return pack;
}
template <class T>
__device__ __forceinline__ void give(T *to, const Packed<T> &pack, long long valid) {
  if (valid >= kPack<T> && aligned<kPack<T>>(to)) return store(to, pack);
  for (int k = 0; k < kPack<T> && k < valid; ++k) to[k] = pack.v[k];
}
// What a peer wrote, past the first-level cache, which does not hear of it.
template <class T>
__device__ __forceinline__ Packed<T> take_part(const T *from) {
  union {
    uint4 words;
    Packed<T> pack;
  } bits;
  bits.words = __ldcg(reinterpret_cast<const uint4 *>(from));
  return bits.pack;
}

}  // namespace pk
