// report.cuh: how a kernel tells of an index that is out of range (core/deferred.py reads it).
#pragma once

namespace pk {

// state (0 = none), then value, axis and size of one index that was out of range. The first is kept.
__device__ __forceinline__ void report_index(long long *report, long long value, long long axis, long long size) {
  if (atomicCAS(reinterpret_cast<unsigned long long *>(report), 0ull, 1ull) != 0) return;
  report[1] = value;
  report[2] = axis;
  report[3] = size;
}

}  // namespace pk
