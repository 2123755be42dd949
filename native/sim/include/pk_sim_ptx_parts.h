// pk_sim_ptx_parts.h: barriers of a part of a block, by number: bar.sync, bar.arrive and bar.red with how many threads
// come.
#pragma once
#pragma GCC system_header

#include "pk_sim_ptx_barrier.h"

static __shared__ unsigned long long pk_ptx_parts[16];  // an mbarrier each
static __shared__ unsigned pk_ptx_votes[16][2];         // of the threads of a phase: for, and 65536 times against
PK_SIM_STATE unsigned pk_sim_parts_of[16];              // in which block each was begun, as pk_sim_blocks_begun counts

// vote: what the thread adds to its phase. Gives back what all have added, to threads that wait.
PK_SIM_NOINLINE unsigned pk_ptx_part(unsigned number, unsigned threads, bool waits, unsigned vote, PK_SIM_HERE) {
  const unsigned whole = blockDim.x * blockDim.y * blockDim.z;
  if (number >= 16) pk_sim_fail(PK_SIM_FAIL_TRAP, "bar: a barrier's number is 0 to 15;", "", pk_sim_file, pk_sim_line);
  if (number == 0 && threads == whole && waits) {
    const unsigned count = __syncthreads_count(vote == 1, pk_sim_file, pk_sim_line);
    return count | (whole - count) << 16;
  }
  if (threads == 0 || threads % 32 || threads > (whole + 31) / 32 * 32)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "bar: a barrier is of whole warps, at most those of the block;", "", pk_sim_file,
                pk_sim_line);
  unsigned long long *const barrier = pk_ptx_parts + number;
  if (pk_sim_parts_of[number] != pk_sim_blocks_begun) {
    pk_sim_begin_atomic(barrier, 8, pk_sim_file, pk_sim_line, true);  // others may run meanwhile
    if (pk_sim_parts_of[number] != pk_sim_blocks_begun) {
      *barrier = 0;
      pk_sim_parts_of[number] = pk_sim_blocks_begun;
    }
  }
  const unsigned thread = pk_sim_thread, last = whole % 32;  // a warp counts as 32 threads
  const unsigned weight = thread == whole - last ? 33 - last : 1;
  bool same = true, first = false;
  const unsigned long long before = pk_ptx_barrier_change(
      barrier,
      [threads, weight, &same, &first](pk_ptx_phase &phase) {
        first = phase.missing == phase.arrivals;
        if (first) phase.missing = phase.arrivals = threads;  // nobody has come yet
        same = phase.arrivals == threads;
        phase.missing -= weight;
      },
      pk_sim_file, pk_sim_line);
  if (!same)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "bar: threads come to one barrier with two numbers of threads;", "", pk_sim_file,
                pk_sim_line);
  unsigned &votes = pk_ptx_votes[number][before & 1u];
  votes = (first ? 0 : votes) + vote;
  while (waits && !pk_ptx_phase_over(barrier, (unsigned)before & 1u, pk_sim_file, pk_sim_line)) {
  }
  return votes;
}
