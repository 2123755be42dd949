// pk_sim_cub_merge.h: CUB's BlockMergeSort and WarpMergeSort, by any order; items that it holds equal stay in theirs.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub_warp.h"

namespace cub {

// mask: lanes of a warp, 0 for all of a block.
template <class Key, class Value, int Threads, int Items>
class pk_sim_cub_merge {
  static_assert((Threads & (Threads - 1)) == 0, "merge sorts take a power of two of threads");
  static constexpr int count = Threads * Items;
  static constexpr bool pairs = !cuda::std::is_same<Value, NullType>::value;
  static_assert(count <= 65536, "merge sorts take up to 65536 items");

 public:
  struct TempStorage {
    pk_sim_cub_room<Key, count> keys;
    pk_sim_cub_room<Value, pairs ? count : 1> values;
    unsigned short order[count], spare[count];
  };

 private:
  TempStorage &room;
  const int rank;
  const unsigned mask;

  void sync(const char *file, int line) const {
    if (mask)
      __syncwarp(mask, file, line);
    else
      __syncthreads(file, line);
  }
  // The order of the first `valid` keys: of one, two, four and so on that are in order already.
  template <class Op>
  void arrange(Op &op, int valid) {
    for (int i = 0; i < valid; ++i) room.order[i] = i;
    for (int width = 1; width < valid; width *= 2) {
      for (int first = 0; first < valid; first += 2 * width) {
        const int middle = first + width < valid ? first + width : valid;
        const int last = middle + width < valid ? middle + width : valid;
        for (int a = first, b = middle, to = first; to < last; ++to) {
          const bool second = a == middle || (b < last && op(room.keys[room.order[b]], room.keys[room.order[a]]));
          room.spare[to] = room.order[second ? b++ : a++];
        }
      }
      for (int i = 0; i < valid; ++i) room.order[i] = room.spare[i];
    }
  }
  template <class Op>
  void run(Key (&keys)[Items], Value *values, Op &op, int valid, const Key &other, const char *file, int line) {
    sync(file, line);
    for (int i = 0; i < Items; ++i) {
      room.keys[rank * Items + i] = keys[i];
      if constexpr (pairs)
        if (values) room.values[rank * Items + i] = values[i];
    }
    sync(file, line);
    if (rank == 0) arrange(op, valid);
    sync(file, line);
    for (int i = 0; i < Items; ++i) {
      const int at = rank * Items + i;
      keys[i] = at < valid ? room.keys[room.order[at]] : other;
      if constexpr (pairs)
        if (values && at < valid) values[i] = room.values[room.order[at]];
    }
  }

 protected:
  pk_sim_cub_merge(TempStorage &room, int rank, unsigned mask) : room(room), rank(rank), mask(mask) {}

 public:
#define PK_SIM_SORT(name)                                                                         \
  template <class Op>                                                                             \
  void name(Key(&keys)[Items], Op op, PK_SIM_HERE) {                                              \
    run(keys, nullptr, op, count, keys[0], pk_sim_file, pk_sim_line);                             \
  }                                                                                               \
  template <class Op>                                                                             \
  void name(Key(&keys)[Items], Op op, int valid, Key other, PK_SIM_HERE) {                        \
    run(keys, nullptr, op, valid, other, pk_sim_file, pk_sim_line);                               \
  }                                                                                               \
  template <class Op>                                                                             \
  void name(Key(&keys)[Items], Value(&values)[Items], Op op, PK_SIM_HERE) {                       \
    run(keys, values, op, count, keys[0], pk_sim_file, pk_sim_line);                              \
  }                                                                                               \
  template <class Op>                                                                             \
  void name(Key(&keys)[Items], Value(&values)[Items], Op op, int valid, Key other, PK_SIM_HERE) { \
    run(keys, values, op, valid, other, pk_sim_file, pk_sim_line);                                \
  }
  PK_SIM_SORT(Sort)
  PK_SIM_SORT(StableSort)
#undef PK_SIM_SORT
};

template <class Key, int X, int Items, class Value = NullType, int Y = 1, int Z = 1, bool Unroll = true>
class BlockMergeSort : public pk_sim_cub_merge<Key, Value, X * Y * Z, Items> {
  typedef pk_sim_cub_merge<Key, Value, X * Y * Z, Items> Merge;

 public:
  using typename Merge::TempStorage;

 private:
  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }

 public:
  BlockMergeSort() : Merge(own(), pk_sim_block_rank(), 0) {}
  BlockMergeSort(TempStorage &room) : Merge(room, pk_sim_block_rank(), 0) {}
};

template <class Key, int Items, int Width = 32, class Value = NullType>
class WarpMergeSort : public pk_sim_cub_merge<Key, Value, Width, Items> {
  typedef pk_sim_cub_merge<Key, Value, Width, Items> Merge;
  typedef pk_sim_cub_lanes<Key, Width> Lanes;

 public:
  using typename Merge::TempStorage;
  WarpMergeSort(TempStorage &room) : Merge(room, Lanes::lane(), Lanes::mask()) {}
  unsigned get_member_mask() const { return Lanes::mask(); }
};

}  // namespace cub
