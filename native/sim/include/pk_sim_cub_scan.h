// pk_sim_cub_scan.h: cub::BlockScan: the warps' running results, then what stands before each warp, for every
// algorithm.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Unused = 0>
class BlockScan {
  static constexpr int threads = X * Y * Z, warps = (threads + 31) / 32;

 public:
  struct TempStorage {
    pk_sim_cub_room<T, threads> values;    // running results in each warp
    pk_sim_cub_room<T, warps + 2> before;  // of each warp, of all, and the caller's own prefix
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  template <class Op>
  void run(const T &input, Op &op, const char *file, int line) {
    room.values[rank] = input;
    __syncthreads(file, line);
    if (rank == 0)
      for (int warp = 0; warp < warps; ++warp) {
        const int first = 32 * warp, count = threads - first < 32 ? threads - first : 32;
        pk_sim_cub_scan(&room.values[first], count, op);
        const T &last = room.values[first + count - 1];
        room.before[warp + 1] = warp ? op(room.before[warp], last) : last;
      }
    __syncthreads(file, line);
  }
  T all() { return room.before[warps]; }
  template <class Op>
  T with_own(Op &op) {
    return rank < 32 ? room.values[rank] : op(room.before[rank / 32], room.values[rank]);
  }
  // Not defined in thread 0.
  template <class Op>
  T before_own(Op &op) {
    if (rank % 32 == 0) return rank ? room.before[rank / 32] : room.values[0];
    return rank < 32 ? room.values[rank - 1] : op(room.before[rank / 32], room.values[rank - 1]);
  }
  template <class Op>
  T before_own(const T &initial, Op &op) {
    const T first = rank < 32 ? initial : op(initial, room.before[rank / 32]);
    return rank % 32 ? op(first, room.values[rank - 1]) : first;
  }
  // What the first warp's call gives to its first thread.
  template <class Prefix>
  T prefix(Prefix &call, const char *file, int line) {
    if (rank < 32) {
      const T given = call(all());
      if (rank == 0) room.before[warps + 1] = given;
    }
    __syncthreads(file, line);
    return room.before[warps + 1];
  }

 public:
  BlockScan() : room(own()) {}
  BlockScan(TempStorage &room) : room(room) {}

  // ---- one item a thread
  template <class Op>
  void InclusiveScan(T input, T &output, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = with_own(op);
  }
  template <class Op>
  void InclusiveScan(T input, T &output, Op op, T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  template <class Op, class Prefix>
  void InclusiveScan(T input, T &output, Op op, Prefix &call, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    const T first = prefix(call, pk_sim_file, pk_sim_line);
    output = op(first, with_own(op));
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, T initial, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = before_own(initial, op);
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, T initial, Op op, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, initial, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  template <class Op, class Prefix>
  void ExclusiveScan(T input, T &output, Op op, Prefix &call, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    const T first = prefix(call, pk_sim_file, pk_sim_line);
    output = rank ? op(first, before_own(op)) : first;
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, Op op, PK_SIM_HERE) {
    run(input, op, pk_sim_file, pk_sim_line);
    output = before_own(op);
  }
  template <class Op>
  void ExclusiveScan(T input, T &output, Op op, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }

  // ---- several items a thread, neighbours
  template <int Items, class Op>
  void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op, PK_SIM_HERE) {
    run(ThreadReduce(input, op), op, pk_sim_file, pk_sim_line);
    pk_sim_cub_items_inclusive(input, output, op, before_own(op), rank != 0);
  }
  template <int Items, class Op>
  void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op, T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  template <int Items, class Op, class Prefix>
  void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op, Prefix &call, PK_SIM_HERE) {
    T first;
    ExclusiveScan(ThreadReduce(input, op), first, op, call, pk_sim_file, pk_sim_line);
    pk_sim_cub_items_inclusive(input, output, op, first, true);
  }
  template <int Items, class Op>
  void ExclusiveScan(T (&input)[Items], T (&output)[Items], T initial, Op op, PK_SIM_HERE) {
    T first;
    ExclusiveScan(ThreadReduce(input, op), first, initial, op, pk_sim_file, pk_sim_line);
    pk_sim_cub_items_exclusive(input, output, op, first, true);
  }
  template <int Items, class Op>
  void ExclusiveScan(T (&input)[Items], T (&output)[Items], T initial, Op op, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, initial, op, pk_sim_file, pk_sim_line);
    aggregate = all();
  }
  template <int Items, class Op, class Prefix>
  void ExclusiveScan(T (&input)[Items], T (&output)[Items], Op op, Prefix &call, PK_SIM_HERE) {
    T first;
    ExclusiveScan(ThreadReduce(input, op), first, op, call, pk_sim_file, pk_sim_line);
    pk_sim_cub_items_exclusive(input, output, op, first, true);
  }
  template <int Items, class Op>
  void ExclusiveScan(T (&input)[Items], T (&output)[Items], Op op, PK_SIM_HERE) {
    run(ThreadReduce(input, op), op, pk_sim_file, pk_sim_line);
    pk_sim_cub_items_exclusive(input, output, op, before_own(op), rank != 0);
  }

  // ---- sums
  void InclusiveSum(T input, T &output, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  void InclusiveSum(T input, T &output, T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  template <class Prefix>
  void InclusiveSum(T input, T &output, Prefix &call, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), call, pk_sim_file, pk_sim_line);
  }
  void ExclusiveSum(T input, T &output, PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  void ExclusiveSum(T input, T &output, T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  template <class Prefix>
  void ExclusiveSum(T input, T &output, Prefix &call, PK_SIM_HERE) {
    ExclusiveScan(input, output, cub::Sum(), call, pk_sim_file, pk_sim_line);
  }
  template <int Items>
  void InclusiveSum(T (&input)[Items], T (&output)[Items], PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  template <int Items>
  void InclusiveSum(T (&input)[Items], T (&output)[Items], T &aggregate, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Prefix>
  void InclusiveSum(T (&input)[Items], T (&output)[Items], Prefix &call, PK_SIM_HERE) {
    InclusiveScan(input, output, cub::Sum(), call, pk_sim_file, pk_sim_line);
  }
  template <int Items>
  void ExclusiveSum(T (&input)[Items], T (&output)[Items], PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), pk_sim_file, pk_sim_line);
  }
  template <int Items>
  void ExclusiveSum(T (&input)[Items], T (&output)[Items], T &aggregate, PK_SIM_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), aggregate, pk_sim_file, pk_sim_line);
  }
  template <int Items, class Prefix>
  void ExclusiveSum(T (&input)[Items], T (&output)[Items], Prefix &call, PK_SIM_HERE) {
    ExclusiveScan(input, output, cub::Sum(), call, pk_sim_file, pk_sim_line);
  }
};

}  // namespace cub
