// pk_sim_cub_counts.h: CUB's BlockHistogram and BlockRunLengthDecode.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub_scan.h"

namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int X, int Items, int Bins, BlockHistogramAlgorithm Algorithm = BLOCK_HISTO_SORT, int Y = 1,
          int Z = 1, int Unused = 0>
class BlockHistogram {
  static constexpr int threads = X * Y * Z;
  static constexpr bool atomic = Algorithm == BLOCK_HISTO_ATOMIC;

 public:
  struct TempStorage {
    pk_sim_cub_room<T, atomic ? 1 : threads * Items> values;
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }

 public:
  BlockHistogram() : room(own()) {}
  BlockHistogram(TempStorage &room) : room(room) {}

  template <class Counter>
  void InitHistogram(Counter *histogram) {
    for (int bin = rank; bin < Bins; bin += threads) histogram[bin] = 0;
  }
  // Adds to the counts that are there.
  template <class Counter>
  void Composite(T (&items)[Items], Counter *histogram, PK_SIM_HERE) {
    if constexpr (atomic) {
      for (int i = 0; i < Items; ++i) atomicAdd(histogram + items[i], 1, pk_sim_file, pk_sim_line);
    } else {
      for (int i = 0; i < Items; ++i) room.values[rank * Items + i] = items[i];
      __syncthreads(pk_sim_file, pk_sim_line);
      if (rank == 0)
        for (int i = 0; i < threads * Items; ++i) ++histogram[(int)room.values[i]];
    }
  }
  template <class Counter>
  void Histogram(T (&items)[Items], Counter *histogram, PK_SIM_HERE) {
    InitHistogram(histogram);
    __syncthreads(pk_sim_file, pk_sim_line);
    Composite(items, histogram, pk_sim_file, pk_sim_line);
  }
};

template <class T, int X, int Runs, int Items, class Offset = unsigned, int Y = 1, int Z = 1>
class BlockRunLengthDecode {
  static constexpr int threads = X * Y * Z, runs = threads * Runs;
  typedef BlockScan<Offset, X, BLOCK_SCAN_RAKING, Y, Z> Scan;

 public:
  struct TempStorage {
    typename Scan::TempStorage scan;
    pk_sim_cub_room<T, runs> values;
    pk_sim_cub_room<Offset, runs> offsets;
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  template <class Given>
  void put(T (&values)[Runs], Given (&offsets)[Runs], const char *file, int line) {
    for (int i = 0; i < Runs; ++i) {
      room.values[rank * Runs + i] = values[i];
      room.offsets[rank * Runs + i] = offsets[i];
    }
    __syncthreads(file, line);
  }
  template <class Length, class Total>
  void put_lengths(T (&values)[Runs], Length (&lengths)[Runs], Total &total, const char *file, int line) {
    Offset offsets[Runs], all;
    for (int i = 0; i < Runs; ++i) offsets[i] = lengths[i];
    Scan(room.scan).ExclusiveSum(offsets, offsets, all, file, line);
    total = all;
    put(values, offsets, file, line);
  }
  // The last run that begins at `place` or before.
  int run_of(Offset place) {
    int first = 0, last = runs;
    while (last - first > 1) {
      const int middle = (first + last) / 2;
      (place < room.offsets[middle] ? last : first) = middle;
    }
    return first;
  }

 public:
  template <class Length, class Total>
  BlockRunLengthDecode(TempStorage &room, T (&values)[Runs], Length (&lengths)[Runs], Total &total, PK_SIM_HERE)
      : room(room) {
    put_lengths(values, lengths, total, pk_sim_file, pk_sim_line);
  }
  template <class Given>
  BlockRunLengthDecode(TempStorage &room, T (&values)[Runs], Given (&offsets)[Runs], PK_SIM_HERE) : room(room) {
    put(values, offsets, pk_sim_file, pk_sim_line);
  }
  template <class Length, class Total>
  BlockRunLengthDecode(T (&values)[Runs], Length (&lengths)[Runs], Total &total, PK_SIM_HERE) : room(own()) {
    put_lengths(values, lengths, total, pk_sim_file, pk_sim_line);
  }
  template <class Given>
  BlockRunLengthDecode(T (&values)[Runs], Given (&offsets)[Runs], PK_SIM_HERE) : room(own()) {
    put(values, offsets, pk_sim_file, pk_sim_line);
  }

  // Items from `from` on, and where each stands in its run.
  template <class Relative>
  void RunLengthDecode(T (&items)[Items], Relative (&places)[Items], Offset from = 0) {
    for (int i = 0; i < Items; ++i) {
      const Offset place = from + rank * Items + i;
      const int run = run_of(place);
      items[i] = room.values[run];
      places[i] = place - room.offsets[run];
    }
  }
  void RunLengthDecode(T (&items)[Items], Offset from = 0) {
    Offset places[Items];
    RunLengthDecode(items, places, from);
  }
};

}  // namespace cub
