// cooperative_groups.h: thread blocks, clusters, grids, tiles and coalesced groups.
#pragma once
#pragma GCC system_header

#include "pk_sim_limits.h"

// Named here, defined by the headers of their own.
struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;

namespace cooperative_groups {

PK_SIM_INLINE unsigned pk_sim_block_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
PK_SIM_INLINE unsigned pk_sim_block_size() { return blockDim.x * blockDim.y * blockDim.z; }

// A barrier in two halves: nobody passes the second before everybody has come to it, which is a correct, if early,
// wait.
struct pk_sim_arrival {};

struct thread_block {
  typedef pk_sim_arrival arrival_token;
  static void sync(PK_SIM_HERE) { __syncthreads(pk_sim_file, pk_sim_line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token &&, PK_SIM_HERE) { __syncthreads(pk_sim_file, pk_sim_line); }
  static unsigned thread_rank() { return pk_sim_block_rank(); }
  static unsigned size() { return pk_sim_block_size(); }
  static unsigned num_threads() { return pk_sim_block_size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
PK_SIM_INLINE thread_block this_thread_block() { return {}; }
// Room that a device of the 7th generation wants for tiles of several warps; here they bring their own.
template <unsigned MaxBlockSize = 1024>
struct block_tile_memory {
  char pk_sim_unused;
};
template <unsigned MaxBlockSize>
PK_SIM_INLINE thread_block this_thread_block(block_tile_memory<MaxBlockSize> &) {
  return {};
}

struct grid_group {
  typedef pk_sim_arrival arrival_token;
  static bool is_valid() { return pk_sim_cooperative; }
  static void sync(PK_SIM_HERE) { pk_sim_barrier(PK_SIM_BARRIER_GRID, 0, pk_sim_file, pk_sim_line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token &&, PK_SIM_HERE) { sync(pk_sim_file, pk_sim_line); }
  static unsigned long long block_rank() { return pk_sim_block; }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * pk_sim_block_size() + pk_sim_block_rank(); }
  static unsigned long long size() { return num_blocks() * pk_sim_block_size(); }
  static unsigned long long num_threads() { return size(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
  static dim3 dim_clusters() { return __clusterGridDimInClusters(); }
  static dim3 cluster_index() { return __clusterIdx(); }
  static unsigned long long num_clusters() { return num_blocks() / __clusterSizeInBlocks(); }
  static unsigned long long cluster_rank() {
    const dim3 at = cluster_index(), extent = dim_clusters();
    return at.x + (unsigned long long)extent.x * (at.y + (unsigned long long)extent.y * at.z);
  }
};
PK_SIM_INLINE grid_group this_grid() { return {}; }

struct cluster_group {
  typedef pk_sim_arrival arrival_token;
  static void sync(PK_SIM_HERE) { __cluster_barrier_wait(pk_sim_file, pk_sim_line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(PK_SIM_HERE) { sync(pk_sim_file, pk_sim_line); }
  static void barrier_wait(arrival_token &&, PK_SIM_HERE) { sync(pk_sim_file, pk_sim_line); }
  static unsigned block_rank() { return __clusterRelativeBlockRank(); }
  static dim3 block_index() { return __clusterRelativeBlockIdx(); }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_blocks() { return pk_sim_cluster; }
  static unsigned num_blocks() { return __clusterSizeInBlocks(); }
  static dim3 dim_threads() {
    return {blockDim.x * pk_sim_cluster.x, blockDim.y * pk_sim_cluster.y, blockDim.z * pk_sim_cluster.z};
  }
  static unsigned num_threads() { return num_blocks() * pk_sim_block_size(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() { return block_rank() * pk_sim_block_size() + pk_sim_block_rank(); }
  template <class T>
  static T *map_shared_rank(T *address, int rank, PK_SIM_HERE) {
    return (T *)pk_sim_map_shared(address, (unsigned)rank, pk_sim_file, pk_sim_line);
  }
  static unsigned query_shared_rank(const void *address) { return __cluster_query_shared_rank(address); }
};
PK_SIM_INLINE cluster_group this_cluster() { return {}; }

// What groups inside a warp share: the lanes of `mask`, ranked in their order.
struct pk_sim_lanes {
  static constexpr bool pk_sim_wide = false;
  unsigned mask;
  static unsigned lane() { return pk_sim_block_rank() % 32; }
  unsigned thread_rank() const { return (unsigned)__popc(mask & ((1u << lane()) - 1)); }
  unsigned size() const { return (unsigned)__popc(mask); }
  unsigned num_threads() const { return size(); }
  void sync(PK_SIM_HERE) const { __syncwarp(mask, pk_sim_file, pk_sim_line); }
  int any(int predicate, PK_SIM_HERE) const { return __any_sync(mask, predicate, pk_sim_file, pk_sim_line); }
  int all(int predicate, PK_SIM_HERE) const { return __all_sync(mask, predicate, pk_sim_file, pk_sim_line); }
  unsigned ballot(int predicate, PK_SIM_HERE) const {
    return ranks(__ballot_sync(mask, predicate, pk_sim_file, pk_sim_line));
  }
  template <class T>
  unsigned match_any(T value, PK_SIM_HERE) const {
    return ranks(__match_any_sync(mask, value, pk_sim_file, pk_sim_line));
  }
  template <class T>
  unsigned match_all(T value, int &predicate, PK_SIM_HERE) const {
    return ranks(__match_all_sync(mask, value, &predicate, pk_sim_file, pk_sim_line));
  }
  // Values of any size, eight bytes at a time.
  template <class T>
  T shfl(T value, unsigned rank, PK_SIM_HERE) const {
    const int source = (int)lane_of(rank % size());
    pk_sim_u64 words[(sizeof(T) + 7) / 8] = {};
    __builtin_memcpy(words, &value, sizeof value);
    for (pk_sim_u64 &word : words) word = pk_sim_warp(PK_SIM_SHFL, mask, word, source, 32, pk_sim_file, pk_sim_line);
    __builtin_memcpy(&value, words, sizeof value);
    return value;
  }
  template <class T>
  T shfl_up(T value, unsigned delta, PK_SIM_HERE) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank >= delta ? rank - delta : rank, pk_sim_file, pk_sim_line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, PK_SIM_HERE) const {
    const unsigned rank = thread_rank();
    return shfl(value, delta < size() - rank ? rank + delta : rank, pk_sim_file, pk_sim_line);
  }
  template <class T>
  T shfl_xor(T value, unsigned rank_mask, PK_SIM_HERE) const {
    const unsigned rank = thread_rank();
    return shfl(value, (rank ^ rank_mask) < size() ? rank ^ rank_mask : rank, pk_sim_file, pk_sim_line);
  }

 private:
  unsigned lane_of(unsigned rank) const {
    if (mask == ~0u) return rank;
    unsigned left = mask;
    for (; rank; --rank) left &= left - 1;
    return (unsigned)__ffs((int)left) - 1;
  }
  unsigned ranks(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned left = mask; left; left &= left - 1, ++rank)
      if (lanes & left & -left) result |= 1u << rank;
    return result;
  }
};

#include "pk_sim_wide_tile.h"

template <unsigned Size, bool Wide>
struct pk_sim_tile_of {
  static_assert(Size >= 1 && (Size & (Size - 1)) == 0, "the size of a tile is a power of two");
  typedef pk_sim_lanes type;
};
template <unsigned Size>
struct pk_sim_tile_of<Size, true> {
  typedef pk_sim_wide_tile<Size> type;
};

template <unsigned Size, class Parent = void>
struct thread_block_tile : pk_sim_tile_of<Size, (Size > 32)>::type {
  typedef typename pk_sim_tile_of<Size, (Size > 32)>::type pk_sim_base;
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other> &other)
      : pk_sim_base(other), pk_sim_rank(other.pk_sim_rank), pk_sim_count(other.pk_sim_count) {}
  unsigned meta_group_rank() const { return pk_sim_rank; }
  unsigned meta_group_size() const { return pk_sim_count; }
  unsigned pk_sim_rank, pk_sim_count;
};

struct coalesced_group : pk_sim_lanes {
  unsigned meta_group_rank() const { return pk_sim_rank; }
  unsigned meta_group_size() const { return pk_sim_count; }
  unsigned pk_sim_rank, pk_sim_count;
};
PK_SIM_INLINE coalesced_group coalesced_threads(PK_SIM_HERE) {
  return {{__activemask(pk_sim_file, pk_sim_line)}, 0, 1};
}

// Any of the groups, when only the run tells which.
struct thread_group : pk_sim_lanes {
  thread_group(const thread_block &) : pk_sim_lanes{0}, pk_sim_kind(1) {}
  thread_group(const grid_group &) : pk_sim_lanes{0}, pk_sim_kind(2) {}
  thread_group(const cluster_group &) : pk_sim_lanes{0}, pk_sim_kind(3) {}
  thread_group(const pk_sim_lanes &lanes) : pk_sim_lanes(lanes), pk_sim_kind(0) {}
  void sync(PK_SIM_HERE) const {
    if (pk_sim_kind == 1) return thread_block::sync(pk_sim_file, pk_sim_line);
    if (pk_sim_kind == 2) return grid_group::sync(pk_sim_file, pk_sim_line);
    if (pk_sim_kind == 3) return cluster_group::sync(pk_sim_file, pk_sim_line);
    pk_sim_lanes::sync(pk_sim_file, pk_sim_line);
  }
  unsigned long long size() const {
    return pk_sim_kind == 1   ? thread_block::size()
           : pk_sim_kind == 2 ? grid_group::size()
           : pk_sim_kind == 3 ? cluster_group::size()
                              : pk_sim_lanes::size();
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    return pk_sim_kind == 1   ? thread_block::thread_rank()
           : pk_sim_kind == 2 ? grid_group::thread_rank()
           : pk_sim_kind == 3 ? cluster_group::thread_rank()
                              : pk_sim_lanes::thread_rank();
  }
  int pk_sim_kind;
};

// ---- partitions
PK_SIM_INLINE unsigned pk_sim_tile_mask(unsigned size) {
  const unsigned first = pk_sim_block_rank() / size * size, left = pk_sim_block_size() - first;
  const unsigned count = left < size ? left : size;
  return (count == 32 ? ~0u : (1u << count) - 1) << first % 32;
}
template <unsigned Size>
PK_SIM_INLINE thread_block_tile<Size, thread_block> tiled_partition(const thread_block &parent, PK_SIM_HERE) {
  thread_block_tile<Size, thread_block> tile;
  if constexpr (Size > 32)
    tile.pk_sim_begin(parent, pk_sim_file, pk_sim_line);
  else
    tile.mask = pk_sim_tile_mask(Size);
  tile.pk_sim_rank = pk_sim_block_rank() / Size;
  tile.pk_sim_count = (pk_sim_block_size() + Size - 1) / Size;
  return tile;
}
template <unsigned Size, unsigned ParentSize, class Grandparent>
PK_SIM_INLINE thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tiled_partition(
    const thread_block_tile<ParentSize, Grandparent> &parent, PK_SIM_HERE) {
  static_assert(Size <= ParentSize, "a tile is at most as large as what it is a part of");
  thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tile;
  if constexpr (Size > 32)
    tile.pk_sim_begin(parent, pk_sim_file, pk_sim_line);
  else
    tile.mask = pk_sim_tile_mask(Size);
  tile.pk_sim_rank = parent.thread_rank() / Size;
  tile.pk_sim_count = ParentSize / Size;
  return tile;
}
PK_SIM_INLINE coalesced_group tiled_partition(const coalesced_group &parent, unsigned size) {
  const unsigned rank = parent.thread_rank(), first = rank / size * size;
  coalesced_group part = {{0}, rank / size, (parent.size() + size - 1) / size};
  unsigned left = parent.mask;
  for (unsigned i = 0; left && i < first + size; ++i, left &= left - 1)
    if (i >= first) part.mask |= left & -left;
  return part;
}
PK_SIM_INLINE thread_group tiled_partition(const thread_block &, unsigned size) {
  return pk_sim_lanes{pk_sim_tile_mask(size)};
}
PK_SIM_INLINE thread_group tiled_partition(const thread_group &parent, unsigned size) {
  if (parent.pk_sim_kind == 1) return pk_sim_lanes{pk_sim_tile_mask(size)};
  return tiled_partition(coalesced_group{{parent.mask}, 0, 1}, size);
}
template <class Group>
PK_SIM_INLINE coalesced_group pk_sim_binary_partition(const Group &group, bool predicate, const char *file, int line) {
  const unsigned yes = __ballot_sync(group.mask, predicate, file, line);
  if (yes == group.mask || yes == 0) return {{group.mask}, 0, 1};
  return {{predicate ? yes : group.mask & ~yes}, predicate, 2};
}
template <class Label, class Group>
PK_SIM_INLINE coalesced_group pk_sim_labeled_partition(const Group &group, Label label, const char *file, int line) {
  const unsigned same = __match_any_sync(group.mask, label, file, line);
  const unsigned first = same & -same, here = 1u << pk_sim_lanes::lane();
  const unsigned firsts = __ballot_sync(group.mask, first == here, file, line);
  return {{same}, (unsigned)__popc(firsts & (first - 1)), (unsigned)__popc(firsts)};
}
PK_SIM_INLINE coalesced_group binary_partition(const coalesced_group &group, bool predicate, PK_SIM_HERE) {
  return pk_sim_binary_partition(group, predicate, pk_sim_file, pk_sim_line);
}
template <unsigned Size, class Parent>
PK_SIM_INLINE coalesced_group binary_partition(const thread_block_tile<Size, Parent> &group, bool predicate,
                                               PK_SIM_HERE) {
  return pk_sim_binary_partition(group, predicate, pk_sim_file, pk_sim_line);
}
template <class Label>
PK_SIM_INLINE coalesced_group labeled_partition(const coalesced_group &group, Label label, PK_SIM_HERE) {
  return pk_sim_labeled_partition(group, label, pk_sim_file, pk_sim_line);
}
template <class Label, unsigned Size, class Parent>
PK_SIM_INLINE coalesced_group labeled_partition(const thread_block_tile<Size, Parent> &group, Label label,
                                                PK_SIM_HERE) {
  return pk_sim_labeled_partition(group, label, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE thread_block_tile<1> this_thread() {
  thread_block_tile<1> one;
  one.mask = 1u << pk_sim_lanes::lane();
  one.pk_sim_rank = 0;
  one.pk_sim_count = 1;
  return one;
}

// ---- functions of groups
template <class Group>
PK_SIM_INLINE void sync(const Group &group, PK_SIM_HERE) {
  group.sync(pk_sim_file, pk_sim_line);
}
template <class Group>
PK_SIM_INLINE auto thread_rank(const Group &group) {
  return group.thread_rank();
}
template <class Group>
PK_SIM_INLINE auto group_size(const Group &group) {
  return group.num_threads();
}
template <class Group, class Function, class... A>
PK_SIM_INLINE void invoke_one(const Group &group, Function &&function, A &&...arguments) {
  if (group.thread_rank() == 0) ((Function &&) function)((A &&) arguments...);
}
template <class Group, class Function, class... A>
PK_SIM_INLINE auto invoke_one_broadcast(const Group &group, Function &&function, A &&...arguments) {
  decltype(function(arguments...)) result{};
  if (group.thread_rank() == 0) result = ((Function &&) function)((A &&) arguments...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups
