// hopper_sim.cuh: the functions of hopper.cuh on the simulated device, by what its inline PTX becomes there: to
// translate the text of hopper.cuh, which macros make, would make the first compile of each kernel longer. Copies
// arrive at once, products are made when they are waited for: the two ends of what a device may do, so that a tile
// which is filled while a product still reads it gives wrong sums, or a race in checked mode.
#pragma once
#include <pk_sim_ldmatrix.h>
#include <pk_sim_ptx.h>
#include <pk_sim_ptx_tensor.h>
#include <pk_sim_ptx_wgmma.h>

namespace pk::hopper {

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ char *shared_pointer(unsigned address) {
  return static_cast<char *>(pk_ptx_shared(address));
}

// ---- clusters and registers

__device__ __forceinline__ unsigned rank_in_cluster() { return __clusterRelativeBlockRank(); }
__device__ __forceinline__ void sync_cluster() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
template <int Registers>
__device__ __forceinline__ void give_registers() {}
template <int Registers>
__device__ __forceinline__ void take_registers() {}

// ---- barriers

__device__ __forceinline__ void make_barrier(Barrier *barrier, unsigned arrivals) {
  pk_ptx_barrier_init(barrier, arrivals);
}
__device__ __forceinline__ void publish_barriers() { __threadfence(); }
__device__ __forceinline__ void arrive(Barrier *barrier, unsigned rank) {
  pk_ptx_barrier_arrive(__cluster_map_shared_rank(barrier, rank), 1, 0, false);
}
__device__ __forceinline__ void arrive_expecting(Barrier *barrier, unsigned bytes) {
  pk_ptx_barrier_arrive(barrier, 1, bytes, false);
}
__device__ __forceinline__ void wait(Barrier *barrier, unsigned parity) {
  while (!pk_ptx_barrier_over(barrier, parity)) {
  }
}

// ---- copies

// Parameters of a function of the host do not lie side by side: the map is put together for each copy.
template <class T>
__device__ __forceinline__ const TensorMap &map_of(T *const &, const MapTail &tail) {
  return reinterpret_cast<const TensorMap &>(tail);
}
__device__ __forceinline__ void fetch_map(const TensorMap &) {}

__device__ __forceinline__ void copy_box_to(unsigned ranks, void *tile, const TensorMap &map, const void *array, int x,
                                            int y, int z, Barrier *barrier) {
  struct alignas(64) {
    const void *array;
    MapTail tail;
  } const whole = {array, reinterpret_cast<const MapTail &>(map)};
  pk_ptx_load_tensor<3>(tile, &whole, {x, y, z}, barrier, ranks, __FILE__, __LINE__);
}
__device__ __forceinline__ void copy_box(void *tile, const TensorMap &map, const void *array, int x, int y, int z,
                                         Barrier *barrier) {
  copy_box_to(0, tile, map, array, x, y, z, barrier);
}

__device__ inline void store_bytes(void *to, const void *from, unsigned bytes) {
  for (unsigned at = 0; at < bytes; at += 16)
    *reinterpret_cast<uint4 *>(static_cast<char *>(to) + at) =
        *reinterpret_cast<const uint4 *>(static_cast<const char *>(from) + at);
}
__device__ __forceinline__ void end_stores() {}
__device__ __forceinline__ void wait_for_stores() {}
__device__ __forceinline__ void publish_to_stores() {}
__device__ __forceinline__ void publish_to_products() {}
__device__ __forceinline__ void prefetch(const void *) {}

// ---- products

template <class Element>
struct NumberOf;
template <>
struct NumberOf<e4m3_t> {
  using type = pk_sim_mma_e4m3;
};
template <>
struct NumberOf<e5m2_t> {
  using type = pk_sim_mma_e5m2;
};
template <>
struct NumberOf<half_t> {
  using type = pk_sim_mma_f16;
};
template <>
struct NumberOf<bfloat16_t> {
  using type = pk_sim_mma_bf16;
};
template <>
struct NumberOf<float> {
  using type = pk_sim_mma_tf32;
};

template <class Element, bool ATurned, bool BTurned>
struct Products {
  __device__ void begin() {}
  template <int Count>
  __device__ void start(float (&sums)[Count], unsigned long long a, unsigned long long b, int add) {
    start(sums, nullptr, a, b, add);
  }
  template <int Count>
  __device__ void start(float (&sums)[Count], const unsigned (&a)[4], unsigned long long b, int add) {
    start(sums, a, 0, b, add);
  }
  __device__ void end() { pk_ptx_commit_products(); }
  template <int Latest>
  __device__ void wait() {
    pk_ptx_wait_products(Latest);
  }
  template <int Count>
  __device__ void wait_for(float (&)[Count]) {
    wait<0>();
  }

 private:
  template <int Count>
  __device__ void start(float (&sums)[Count], const unsigned *held, unsigned long long a, unsigned long long b,
                        int add) {
    using Number = typename NumberOf<Element>::type;
    pk_ptx_wgmma<pk_sim_mma_f32, Number, Number>(Count * kGroup / kProductRows, sums, true, held, a, b, add != 0, false,
                                                 false, ATurned, BTurned, false, __FILE__, __LINE__);
  }
};

}  // namespace pk::hopper
