// pk_sim_cub_neighbours.h: CUB's BlockDiscontinuity, BlockAdjacentDifference and BlockShuffle: items beside the
// thread's.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub.h"

namespace cub {

// The first and the last item of each thread.
template <class T, int X, int Y, int Z>
struct pk_sim_cub_ends {
  static constexpr int threads = X * Y * Z;
  struct TempStorage {
    pk_sim_cub_room<T, threads> first, last;
  };
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  template <int Items>
  void put(const T (&items)[Items], bool first, bool last, const char *file, int line) {
    if (first) room.first[rank] = items[0];
    if (last) room.last[rank] = items[Items - 1];
    __syncthreads(file, line);
  }
};

// A function of two neighbours, or of these and the place of the second.
template <class Op, class T>
PK_SIM_INLINE auto pk_sim_cub_flag(Op &op, const T &a, const T &b, int at, int) -> decltype(op(a, b, at)) {
  return op(a, b, at);
}
template <class Op, class T>
PK_SIM_INLINE auto pk_sim_cub_flag(Op &op, const T &a, const T &b, int, long) -> decltype(op(a, b)) {
  return op(a, b);
}

template <class T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockDiscontinuity : pk_sim_cub_ends<T, X, Y, Z> {
  typedef pk_sim_cub_ends<T, X, Y, Z> Ends;

  template <int Items, class Flag, class Op>
  void heads(Flag (&flags)[Items], T (&items)[Items], T (&before)[Items], Op &op, const T *block) {
    const int at = this->rank * Items;
    if (this->rank || block) {
      before[0] = this->rank ? this->room.last[this->rank - 1] : *block;
      flags[0] = pk_sim_cub_flag(op, before[0], items[0], at, 0);
    } else {
      flags[0] = 1;
    }
    for (int i = 1; i < Items; ++i) {
      before[i] = items[i - 1];
      flags[i] = pk_sim_cub_flag(op, before[i], items[i], at + i, 0);
    }
  }
  template <int Items, class Flag, class Op>
  void tails(Flag (&flags)[Items], T (&items)[Items], Op &op, const T *block) {
    const int at = this->rank * Items + 1;
    for (int i = 0; i < Items - 1; ++i) flags[i] = pk_sim_cub_flag(op, items[i], items[i + 1], at + i, 0);
    const bool last = this->rank == Ends::threads - 1;
    if (last && !block) {
      flags[Items - 1] = 1;
    } else {
      const T after = last ? *block : this->room.first[this->rank + 1];
      flags[Items - 1] = pk_sim_cub_flag(op, items[Items - 1], after, at + Items - 1, 0);
    }
  }

 public:
  using typename Ends::TempStorage;
  BlockDiscontinuity() : Ends{Ends::own()} {}
  BlockDiscontinuity(TempStorage &room) : Ends{room} {}

  // With what stands before the block's first item, or behind its last, or without: a head, or a tail, then.
  template <int Items, class Flag, class Op>
  void FlagHeads(Flag (&flags)[Items], T (&items)[Items], T (&before)[Items], Op op, PK_SIM_HERE) {
    this->put(items, false, true, pk_sim_file, pk_sim_line);
    heads(flags, items, before, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  void FlagHeads(Flag (&flags)[Items], T (&items)[Items], T (&before)[Items], Op op, T block, PK_SIM_HERE) {
    this->put(items, false, true, pk_sim_file, pk_sim_line);
    heads(flags, items, before, op, &block);
  }
  template <int Items, class Flag, class Op>
  void FlagHeads(Flag (&flags)[Items], T (&items)[Items], Op op, PK_SIM_HERE) {
    T before[Items];
    FlagHeads(flags, items, before, op, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Flag, class Op>
  void FlagHeads(Flag (&flags)[Items], T (&items)[Items], Op op, T block, PK_SIM_HERE) {
    T before[Items];
    FlagHeads(flags, items, before, op, block, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Flag, class Op>
  void FlagTails(Flag (&flags)[Items], T (&items)[Items], Op op, PK_SIM_HERE) {
    this->put(items, true, false, pk_sim_file, pk_sim_line);
    tails(flags, items, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  void FlagTails(Flag (&flags)[Items], T (&items)[Items], Op op, T block, PK_SIM_HERE) {
    this->put(items, true, false, pk_sim_file, pk_sim_line);
    tails(flags, items, op, &block);
  }
#define PK_SIM_BOTH(before, after, ...)                     \
  template <int Items, class Flag, class Op>                \
  void FlagHeadsAndTails(__VA_ARGS__, Op op, PK_SIM_HERE) { \
    T preds[Items];                                         \
    this->put(items, true, true, pk_sim_file, pk_sim_line); \
    heads(head, items, preds, op, before);                  \
    tails(tail, items, op, after);                          \
  }
  PK_SIM_BOTH(nullptr, nullptr, Flag (&head)[Items], Flag (&tail)[Items], T (&items)[Items])
  PK_SIM_BOTH(nullptr, &last, Flag (&head)[Items], Flag (&tail)[Items], T last, T (&items)[Items])
  PK_SIM_BOTH(&first, nullptr, Flag (&head)[Items], T first, Flag (&tail)[Items], T (&items)[Items])
  PK_SIM_BOTH(&first, &last, Flag (&head)[Items], T first, Flag (&tail)[Items], T last, T (&items)[Items])
#undef PK_SIM_BOTH
};

template <class T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockAdjacentDifference : pk_sim_cub_ends<T, X, Y, Z> {
  typedef pk_sim_cub_ends<T, X, Y, Z> Ends;

  // Items from `valid` on stay as they are.
  template <int Items, class Out, class Op>
  void left(T (&in)[Items], Out (&out)[Items], Op &op, int valid, const T *block, const char *file, int line) {
    this->put(in, false, true, file, line);
    const int at = this->rank * Items;
    for (int i = Items - 1; i > 0; --i) out[i] = at + i < valid ? (Out)op(in[i], in[i - 1]) : (Out)in[i];
    const bool any = at < valid && (this->rank || block);
    out[0] = any ? (Out)op(in[0], this->rank ? this->room.last[this->rank - 1] : *block) : (Out)in[0];
  }
  template <int Items, class Out, class Op>
  void right(T (&in)[Items], Out (&out)[Items], Op &op, int valid, const T *block, const char *file, int line) {
    this->put(in, true, false, file, line);
    const int at = this->rank * Items;
    for (int i = 0; i < Items - 1; ++i) out[i] = at + i < valid - 1 ? (Out)op(in[i], in[i + 1]) : (Out)in[i];
    const T own = in[Items - 1];
    if (this->rank == Ends::threads - 1)
      out[Items - 1] = block ? (Out)op(own, *block) : (Out)own;
    else
      out[Items - 1] = at + Items < valid ? (Out)op(own, this->room.first[this->rank + 1]) : (Out)own;
  }

 public:
  using typename Ends::TempStorage;
  BlockAdjacentDifference() : Ends{Ends::own()} {}
  BlockAdjacentDifference(TempStorage &room) : Ends{room} {}

#define PK_SIM_SUBTRACT(name, side, valid, block, ...)                            \
  template <int Items, class Out, class Op>                                       \
  void name(T(&in)[Items], Out(&out)[Items], Op op, ##__VA_ARGS__, PK_SIM_HERE) { \
    side(in, out, op, valid, block, pk_sim_file, pk_sim_line);                    \
  }
  PK_SIM_SUBTRACT(SubtractLeft, left, 1 << 30, nullptr)
  PK_SIM_SUBTRACT(SubtractLeft, left, 1 << 30, &before, T before)
  PK_SIM_SUBTRACT(SubtractLeftPartialTile, left, valid, nullptr, int valid)
  PK_SIM_SUBTRACT(SubtractLeftPartialTile, left, valid, &before, int valid, T before)
  PK_SIM_SUBTRACT(SubtractRight, right, 1 << 30, nullptr)
  PK_SIM_SUBTRACT(SubtractRight, right, 1 << 30, &after, T after)
  PK_SIM_SUBTRACT(SubtractRightPartialTile, right, valid, nullptr, int valid)
#undef PK_SIM_SUBTRACT
};

template <class T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockShuffle {
  static constexpr int threads = X * Y * Z;

 public:
  struct TempStorage {
    pk_sim_cub_room<T, threads> values;
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  void put(const T &value, const char *file, int line) {
    room.values[rank] = value;
    __syncthreads(file, line);
  }

 public:
  BlockShuffle() : room(own()) {}
  BlockShuffle(TempStorage &room) : room(room) {}

  // Where there is no such thread the output stays as it is.
  void Offset(T input, T &output, int distance = 1, PK_SIM_HERE) {
    put(input, pk_sim_file, pk_sim_line);
    const int from = rank + distance;
    if (from >= 0 && from < threads) output = room.values[from];
  }
  void Rotate(T input, T &output, unsigned distance = 1, PK_SIM_HERE) {
    put(input, pk_sim_file, pk_sim_line);
    output = room.values[(rank + distance) % threads];
  }
  template <int Items>
  void Up(T (&input)[Items], T (&before)[Items], PK_SIM_HERE) {
    put(input[Items - 1], pk_sim_file, pk_sim_line);
    for (int i = Items - 1; i > 0; --i) before[i] = input[i - 1];
    if (rank) before[0] = room.values[rank - 1];
  }
  template <int Items>
  void Up(T (&input)[Items], T (&before)[Items], T &last, PK_SIM_HERE) {
    Up(input, before, pk_sim_file, pk_sim_line);
    last = room.values[threads - 1];
  }
  template <int Items>
  void Down(T (&input)[Items], T (&after)[Items], PK_SIM_HERE) {
    put(input[0], pk_sim_file, pk_sim_line);
    for (int i = 0; i < Items - 1; ++i) after[i] = input[i + 1];
    if (rank < threads - 1) after[Items - 1] = room.values[rank + 1];
  }
  template <int Items>
  void Down(T (&input)[Items], T (&after)[Items], T &first, PK_SIM_HERE) {
    Down(input, after, pk_sim_file, pk_sim_line);
    first = room.values[0];
  }
};

}  // namespace cub
