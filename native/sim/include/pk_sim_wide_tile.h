// pk_sim_wide_tile.h: tiles of more threads than a warp has: their barrier, and what their threads give each other
// through shared memory. Included by cooperative_groups.h.
#pragma once
#pragma GCC system_header

// Named as no variable of the simulator's own is, so that the checker sees what it orders.
struct wide_tile_barrier {
  int left;
  unsigned phase;
};
template <unsigned Size>
PK_SIM_INLINE wide_tile_barrier *wide_tile_barriers() {
  __shared__ wide_tile_barrier all[1024 / Size];
  return all;
}

template <unsigned Size>
struct pk_sim_wide_tile {
  static_assert(Size == 64 || Size == 128 || Size == 256 || Size == 512 || Size == 1024,
                "a tile has 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 or 1024 threads");
  static constexpr bool pk_sim_wide = true;
  static unsigned thread_rank() { return pk_sim_block_rank() % Size; }
  static unsigned size() { return Size; }
  static unsigned num_threads() { return Size; }

  static void sync(PK_SIM_HERE) {
    wide_tile_barrier &barrier = wide_tile_barriers<Size>()[place()];
    __threadfence(pk_sim_file, pk_sim_line);
    const unsigned phase = atomicAdd(&barrier.phase, 0u, pk_sim_file, pk_sim_line);
    if (atomicSub(&barrier.left, 1, pk_sim_file, pk_sim_line) == 1) {
      __threadfence(pk_sim_file, pk_sim_line);  // what the others did before they came is done
      atomicExch(&barrier.left, there(), pk_sim_file, pk_sim_line);
      __threadfence(pk_sim_file, pk_sim_line);
      atomicAdd(&barrier.phase, 1u, pk_sim_file, pk_sim_line);
    }
    while (atomicAdd(&barrier.phase, 0u, pk_sim_file, pk_sim_line) == phase) pk_sim_yield(pk_sim_file, pk_sim_line);
    __threadfence(pk_sim_file, pk_sim_line);
  }
  template <class T>
  static T shfl(T value, unsigned rank, PK_SIM_HERE) {
    T &given = *room<T>();
    if (thread_rank() == rank) given = value;
    sync(pk_sim_file, pk_sim_line);
    value = given;
    sync(pk_sim_file, pk_sim_line);
    return value;
  }
  static int any(int predicate, PK_SIM_HERE) {
    return pk_sim_reduce(
        predicate != 0, [](int a, int b) { return a | b; }, pk_sim_file, pk_sim_line);
  }
  static int all(int predicate, PK_SIM_HERE) {
    return pk_sim_reduce(
        predicate != 0, [](int a, int b) { return a & b; }, pk_sim_file, pk_sim_line);
  }

  // Partners and their order are those of a device: the warps' trees, and then a tree of the warps.
  template <class T, class Operation>
  static T pk_sim_reduce(T value, Operation operation, const char *file, int line) {
    for (int partner = 16; partner; partner /= 2)
      value = operation(value, pk_sim_lanes{~0u}.shfl_xor(value, partner, file, line));
    T sums[Size / 32];
    give(value, sums, file, line);
    for (unsigned partner = Size / 64; partner; partner /= 2)
      for (unsigned i = 0; i < partner; ++i) sums[i] = operation(sums[i], sums[i + partner]);
    return sums[0];
  }
  // Running results with the thread's own value, and without it; the first thread's without is T{}.
  template <class T, class Operation>
  static void pk_sim_scan(T &with, T &without, Operation operation, const char *file, int line) {
    const pk_sim_lanes warp = {~0u};
    const unsigned lane = pk_sim_lanes::lane(), own = thread_rank() / 32;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const T other = warp.shfl_up(with, distance, file, line);
      if (distance <= lane) with = operation(with, other);
    }
    const T last = warp.shfl(with, 31, file, line), before = warp.shfl_up(with, 1, file, line);
    T sums[Size / 32];
    give(last, sums, file, line);
    for (unsigned distance = 1; distance < Size / 32; distance *= 2)
      for (unsigned i = Size / 32 - 1; i >= distance; --i) sums[i] = operation(sums[i], sums[i - distance]);
    without = lane ? before : T{};
    if (own == 0) return;
    with = operation(with, sums[own - 1]);
    without = lane ? operation(before, sums[own - 1]) : sums[own - 1];
  }

  // Makes the tile's barrier; all threads of `parent` come here.
  template <class Parent>
  static void pk_sim_begin(const Parent &parent, const char *file, int line) {
    parent.sync(file, line);
    if (thread_rank() == 0) wide_tile_barriers<Size>()[place()] = {there(), 0};
    parent.sync(file, line);
  }

 private:
  template <class T>
  static T *room() {  // an element for each of the tile's warps
    __shared__ T values[32];
    return values + place() * (Size / 32);
  }
  static unsigned place() { return pk_sim_block_rank() / Size; }
  static int there() {
    const unsigned left = pk_sim_block_size() - place() * Size;
    return (int)(left < Size ? left : Size);
  }
  // One value of each warp of the tile to all of its threads.
  template <class T>
  static void give(const T &value, T (&all)[Size / 32], const char *file, int line) {
    T *const values = room<T>();
    if (pk_sim_lanes::lane() == 0) values[thread_rank() / 32] = value;
    sync(file, line);
    for (unsigned i = 0; i < Size / 32; ++i) all[i] = values[i];
    sync(file, line);
  }
};
