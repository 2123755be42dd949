// pk_sim_cub_warp.h: CUB's collectives of a warp, or of a part of it: reductions and running results.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub.h"

namespace cub {

// The lanes of a logical warp, and their values in shared memory.
template <class T, int Width>
struct pk_sim_cub_lanes {
  static_assert(Width >= 1 && Width <= 32, "a logical warp has 1 to 32 threads");
  struct TempStorage {
    pk_sim_cub_room<T, Width> values;
  };
  TempStorage &room;

  static int lane() { return pk_sim_block_rank() % 32 % Width; }
  static unsigned mask() {
    const int first = pk_sim_block_rank() % 32 / Width * Width;
    return Width == 32 ? ~0u : ((1u << Width % 32) - 1) << first;
  }
  void put(const T &value, const char *file, int line) {
    room.values[lane()] = value;
    __syncwarp(mask(), file, line);
  }
};

template <class T, int Width = 32>
class WarpReduce : pk_sim_cub_lanes<T, Width> {
  typedef pk_sim_cub_lanes<T, Width> Lanes;

 public:
  using typename Lanes::TempStorage;
  WarpReduce(TempStorage &room) : Lanes{room} {}

  // Lane 0 has the result.
  template <class Op>
  T Reduce(T input, Op op, int valid, PK_SIM_HERE) {
    this->put(input, pk_sim_file, pk_sim_line);
    if (Lanes::lane()) return input;
    pk_sim_cub_reduce(&this->room.values[0], valid < Width ? valid : Width, op);
    return this->room.values[0];
  }
  template <class Op>
  T Reduce(T input, Op op, PK_SIM_HERE) {
    return Reduce(input, op, Width, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Op>
  T Reduce(T (&input)[Items], Op op, PK_SIM_HERE) {
    return Reduce(ThreadReduce(input, op), op, Width, pk_sim_file, pk_sim_line);
  }
#define PK_SIM_OPERATION(name, Op)                                                                         \
  T name(T input, PK_SIM_HERE) { return Reduce(input, Op(), Width, pk_sim_file, pk_sim_line); }            \
  T name(T input, int valid, PK_SIM_HERE) { return Reduce(input, Op(), valid, pk_sim_file, pk_sim_line); } \
  template <int Items>                                                                                     \
  T name(T(&input)[Items], PK_SIM_HERE) {                                                                  \
    return Reduce(input, Op(), pk_sim_file, pk_sim_line);                                                  \
  }
  PK_SIM_OPERATION(Sum, cub::Sum)
  PK_SIM_OPERATION(Max, cub::Max)
  PK_SIM_OPERATION(Min, cub::Min)
#undef PK_SIM_OPERATION
};

template <class T, int Width = 32>
class WarpScan : pk_sim_cub_lanes<T, Width> {
  typedef pk_sim_cub_lanes<T, Width> Lanes;

  template <class Op>
  void run(const T &input, Op &op, const char *file, int line) {
    this->put(input, file, line);
    if (Lanes::lane() == 0) pk_sim_cub_scan(&this->room.values[0], Width, op);
    __syncwarp(Lanes::mask(), file, line);
  }
  T inclusive() { return this->room.values[Lanes::lane()]; }
  T before() { return this->room.values[Lanes::lane() ? Lanes::lane() - 1 : 0]; }
  T all() { return this->room.values[Width - 1]; }

 public:
  using typename Lanes::TempStorage;
  WarpScan(TempStorage &room) : Lanes{room} {}

  template <class Op>
  void InclusiveScan(T input, T &output, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = inclusive();
  }
  template <class Op>
  void InclusiveScan(T input, T &output, Op op, T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  // Without an initial value lane 0 gets none that is defined.
  template <class Op>
  void ExclusiveScan(T input, T &output, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = before();
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, T initial, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = Lanes::lane() ? op(initial, before()) : initial;
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, T initial, Op op, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, initial, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  template <class Op>
  void Scan(T input, T &with, T &without, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    with = inclusive(), without = before();
  }
  template <class Op>
  void Scan(T input, T &with, T &without, T initial, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    with = op(initial, inclusive()), without = Lanes::lane() ? op(initial, before()) : initial;
  }
  void InclusiveSum(T input, T &output, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  void InclusiveSum(T input, T &output, T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  void ExclusiveSum(T input, T &output, PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  void ExclusiveSum(T input, T &output, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  T Broadcast(T input, unsigned source, PK_SIM_HERE) {
    if (Lanes::lane() == (int)source) this->room.values[0] = input;
    __syncwarp(Lanes::mask(), pk_sim_file, pk_sim_line);
    return this->room.values[0];
  }
};

}  // namespace cub
