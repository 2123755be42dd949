// pk_sim_cub_reduce.h: cub::BlockReduce: the warps' reductions, then these one after the other, for every algorithm.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub.h"

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };

template <class T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockReduce {
 public:
  struct TempStorage {
    pk_sim_cub_room<T, X * Y * Z> values;
  };

 private:
  TempStorage &room;

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }

 public:
  BlockReduce() : room(own()) {}
  BlockReduce(TempStorage &room) : room(room) {}

  // Thread 0 has the result.
  template <class Op>
  T Reduce(T input, Op op, int valid, PK_SIM_HERE) {
    const int rank = pk_sim_block_rank();
    room.values[rank] = input;
    __syncthreads(pk_sim_file, pk_sim_line);
    if (rank) return input;
    if (valid > X * Y * Z) valid = X * Y * Z;
    for (int first = 0; first < valid; first += 32) {
      pk_sim_cub_reduce(&room.values[first], valid - first < 32 ? valid - first : 32, op);
      if (first) room.values[0] = op(room.values[0], room.values[first]);
    }
    return room.values[0];
  }
  template <class Op>
  T Reduce(T input, Op op, PK_SIM_HERE) {
    return Reduce(input, op, X * Y * Z, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Op>
  T Reduce(T (&inputs)[Items], Op op, PK_SIM_HERE) {
    return Reduce(ThreadReduce(inputs, op), op, pk_sim_file, pk_sim_line);
  }
  T Sum(T input, PK_SIM_HERE) { return Reduce(input, cub::Sum(), pk_sim_file, pk_sim_line); }
  T Sum(T input, int valid, PK_SIM_HERE) { return Reduce(input, cub::Sum(), valid, pk_sim_file, pk_sim_line); }
  template <int Items>
  T Sum(T (&inputs)[Items], PK_SIM_HERE) {
    return Reduce(inputs, cub::Sum(), pk_sim_file, pk_sim_line);
  }
};

}  // namespace cub
