// choose.cuh: which digit the needed-th of counted elements has, where elements are chosen digit by digit.
#pragma once

namespace pk {

// By one warp. counts: how many elements have each of 256 digits. One lane calls deliver(digit, rest, equal): the digit
// of the needed-th element (from 1) in ascending order, how many of those with this digit are needed, how many there
// are.
template <class Deliver>
__device__ __forceinline__ void choose_digit(const unsigned *counts, unsigned needed, const Deliver &deliver) {
  constexpr unsigned kWholeWarp = 0xffffffffu;
  const int lane = threadIdx.x % 32;
  unsigned sum = 0;
  for (int j = 0; j < 8; ++j) sum += counts[lane * 8 + j];
  unsigned before = sum;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(kWholeWarp, before, distance);
    if (lane >= distance) before += other;
  }
  before -= sum;
  if (before >= needed || before + sum < needed) return;
  int j = 0;
  for (; before + counts[lane * 8 + j] < needed; ++j) before += counts[lane * 8 + j];
  deliver(static_cast<unsigned>(lane * 8 + j), needed - before, counts[lane * 8 + j]);
}

}  // namespace pk
