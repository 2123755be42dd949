// hopper.cuh: what SM 9.0 alone has for what products read: barriers that count bytes, copies of boxes of an array, and
// the tiles in shared memory that they fill. Inline PTX.
//
// A tile is lines of 128 bytes, one after the other, from a multiple of 1024 bytes on. The eight pieces of 16 bytes of
// a line are swapped: bits 4 to 6 of an address are combined (xor) with its bits 7 to 9. Copies write and products read
// so.
#pragma once
#include "storage.cuh"

namespace pk::hopper {

constexpr int kLine = 128;         // bytes of a line of a tile
constexpr int kGroup = 128;        // threads of a warp group
constexpr int kProductRows = 64;   // of one product
constexpr int kProductBytes = 32;  // along k, that one product reads
constexpr int kTileStart = 1024;   // a tile begins at a multiple of so many bytes

// What describes an array to the copies (CUtensorMap of the driver): its address, and what follows here. A kernel has
// both as parameters, one after the other from a multiple of 64 bytes on, so that no call has to know an address.
struct MapTail {
  unsigned char bytes[120];
};
struct TensorMap;  // nothing looks into it

// In shared memory. It waits for arrivals and for bytes; a phase ends when none of either is missing.
struct Barrier {
  unsigned long long state;
};

// A thread's sums of a product: 4 i + 2 r + c is of row (thread % 128 / 32) * 16 + thread % 32 / 4 + 8 r and column
// 8 i + thread % 4 * 2 + c.
template <int Columns>
using Sums = float[kProductRows * Columns / kGroup];

// A descriptor of a tile for products, by its address in shared memory: that address, the 1024 bytes from eight lines
// to the next eight, and 1 for lines of 128 bytes with swapped pieces. Lines of a tile go along k, 32 bytes of them to
// a product. Those of a transposed tile, of numbers of 16 bits, each have one k: 64 lines of 64 rows (or columns), then
// the same lines of the next 64, of which the descriptor has the distance. A product takes 16 lines.
constexpr int kChunk = 64;  // rows or columns of a line of a transposed tile
template <bool Transposed>
__device__ __forceinline__ unsigned long long descriptor_of(unsigned address) {
  constexpr unsigned long long kNext = Transposed ? kChunk * kLine >> 4 : 1;
  return (address & 0x3ffffu) >> 4 | kNext << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}
// What to add to it for the next product along k.
template <bool Transposed>
constexpr unsigned long long kDescriptorStep = (Transposed ? kProductBytes / 2 * kLine : kProductBytes) >> 4;

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// ---- clusters

__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Waits for every thread of the cluster. A warp comes together first.
__device__ __forceinline__ void sync_cluster() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- registers: a warp group's share; all its warps come here

template <int Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// ---- barriers

__device__ __forceinline__ void make_barrier(Barrier *barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Before others use the barriers that this thread made.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives at the barrier that a block of the cluster has at the same place. It orders what products have read, which
// are waited for, before what copies write; other memory it does not order among blocks: that would wait for all of it.
__device__ __forceinline__ void arrive(Barrier *barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// Arrives and tells how many bytes of copies belong to this phase.
__device__ __forceinline__ void arrive_expecting(Barrier *barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Waits until the phase of that parity has ended.
__device__ __forceinline__ void wait(Barrier *barrier, unsigned parity) {
  unsigned over;
  do {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!over);
}

// ---- copies

// The map of the array at a kernel's parameter, of which the tail is the next one.
template <class T>
__device__ __forceinline__ const TensorMap &map_of(T *const &array, const MapTail &) {
  return reinterpret_cast<const TensorMap &>(array);
}

__device__ __forceinline__ void fetch_map(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// A box of an array into a tile: from element x of line y of matrix z on; what lies outside of the array becomes 0. Its
// bytes count at the barrier.
__device__ __forceinline__ void copy_box(void *tile, const TensorMap &map, int x, int y, int z, Barrier *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(tile)),
      "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The same for every block of the cluster whose bit is set: into its tile and for its barrier at the same places.
__device__ __forceinline__ void copy_box_to(unsigned ranks, void *tile, const TensorMap &map, int x, int y, int z,
                                            Barrier *barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(tile)),
      "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(static_cast<unsigned short>(ranks))
      : "memory");
}

// `bytes` of this block's shared memory into an array, both at multiples of 16, as they are many. Others go on
// meanwhile.
__device__ __forceinline__ void store_bytes(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
// After all that a thread stores so at a time.
__device__ __forceinline__ void end_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until what this thread stores so has been read.
__device__ __forceinline__ void wait_for_stores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
// Before another thread stores what this one has written to shared memory, or a product reads it.
__device__ __forceinline__ void publish_to_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void publish_to_products() { publish_to_stores(); }

// Asks for the line of 128 bytes at an address to be read into the second-level cache.
__device__ __forceinline__ void prefetch(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

}  // namespace pk::hopper
