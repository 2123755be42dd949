// cooperative_groups.h: thread blocks, tiles of up to 32 threads, coalesced groups and reductions over them. A grid can
// be asked for its extent, but not synchronised.
#pragma once
#pragma GCC system_header

namespace cooperative_groups {

PK_SIM_INLINE unsigned pk_sim_block_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
PK_SIM_INLINE unsigned pk_sim_block_size() { return blockDim.x * blockDim.y * blockDim.z; }

struct thread_block {
  static void sync(PK_SIM_HERE) { __syncthreads(pk_sim_file, pk_sim_line); }
  static unsigned thread_rank() { return pk_sim_block_rank(); }
  static unsigned size() { return pk_sim_block_size(); }
  static unsigned num_threads() { return pk_sim_block_size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
PK_SIM_INLINE thread_block this_thread_block() { return {}; }

struct grid_group {
  static void sync(PK_SIM_HERE) {
    pk_sim_fail(PK_SIM_FAIL_TRAP, "grid.sync(), which the simulated device does not have,", "", pk_sim_file,
                pk_sim_line);
  }
  static bool is_valid() { return false; }
  static unsigned long long block_rank() { return pk_sim_block; }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * pk_sim_block_size() + pk_sim_block_rank(); }
  static unsigned long long size() { return num_blocks() * pk_sim_block_size(); }
  static unsigned long long num_threads() { return size(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
};
PK_SIM_INLINE grid_group this_grid() { return {}; }

// What groups inside a warp share: the lanes of `mask`, ranked in their order.
struct pk_sim_lanes {
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
  template <class T>
  T shfl(T value, unsigned rank, PK_SIM_HERE) const {
    return __shfl_sync(mask, value, (int)lane_of(rank % size()), 32, pk_sim_file, pk_sim_line);
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

template <unsigned Size, class Parent = void>
struct thread_block_tile : pk_sim_lanes {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  static unsigned meta_group_rank() { return pk_sim_block_rank() / Size; }
  static unsigned meta_group_size() { return (pk_sim_block_size() + Size - 1) / Size; }
};
template <unsigned Size, class Group>
PK_SIM_INLINE thread_block_tile<Size, Group> tiled_partition(const Group &) {
  const unsigned rank = pk_sim_block_rank(), first = rank / Size * Size, block = pk_sim_block_size();
  const unsigned count = block - first < Size ? block - first : Size;
  thread_block_tile<Size, Group> tile;
  tile.mask = (count == 32 ? ~0u : (1u << count) - 1) << first % 32;
  return tile;
}

struct coalesced_group : pk_sim_lanes {};
PK_SIM_INLINE coalesced_group coalesced_threads(PK_SIM_HERE) {
  coalesced_group group;
  group.mask = __activemask(pk_sim_file, pk_sim_line);
  return group;
}

template <class Group>
PK_SIM_INLINE void sync(const Group &group, PK_SIM_HERE) {
  group.sync(pk_sim_file, pk_sim_line);
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// In the order of ranks, so that every run gives the same bits.
template <class Group, class T, class Operation>
PK_SIM_INLINE T reduce(const Group &group, T value, Operation operation, PK_SIM_HERE) {
  T result = group.shfl(value, 0, pk_sim_file, pk_sim_line);
  for (unsigned rank = 1; rank < group.size(); ++rank)
    result = operation(result, group.shfl(value, rank, pk_sim_file, pk_sim_line));
  return result;
}
template <class Group, class T, class Operation>
PK_SIM_INLINE T inclusive_scan(const Group &group, T value, Operation operation, PK_SIM_HERE) {
  T result = group.shfl(value, 0, pk_sim_file, pk_sim_line);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T next = group.shfl(value, rank, pk_sim_file, pk_sim_line);
    if (rank <= group.thread_rank()) result = operation(result, next);
  }
  return result;
}

}  // namespace cooperative_groups
