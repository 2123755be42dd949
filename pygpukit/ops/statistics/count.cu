// count.cu: in which bin an element lies, how many lie in each, and sums of weights by bin in an order fixed by position.
#include "numeric.cuh"

namespace pk {

struct CountCall {
  long long size;  // elements
  long long bins;
};

constexpr int kThreads = 256;
constexpr int kHeld = 4096;  // bins that a block counts in shared memory

// The bin of x among ascending edges, the last with both its ends; bins for what lies in none, and for NaN.
template <class T>
__device__ __forceinline__ long long bin_of(T x, const T *edges, long long bins) {
  if (!(x >= edges[0] && x <= edges[bins])) return bins;
  long long low = 0, high = bins;
  while (high - low > 1) {
    const long long middle = low + (high - low) / 2;
    if (edges[middle] <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// counts[bin(i)] += 1 for every element; integers, so that no order of the additions shows.
template <class Bin>
__device__ __forceinline__ void count(const Bin &bin, unsigned long long *counts, const CountCall &p) {
  __shared__ unsigned held[kHeld];
  const bool here = p.bins <= kHeld;
  if (here) {
    for (int k = threadIdx.x; k < p.bins; k += kThreads) held[k] = 0;
    __syncthreads();
  }
  const long long step = static_cast<long long>(gridDim.x) * kThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < p.size; i += step) {
    const long long place = bin(i);
    if (place < 0 || place >= p.bins) continue;
    if (here) {
      atomicAdd(&held[place], 1u);
    } else {
      atomicAdd(&counts[place], 1ull);
    }
  }
  if (!here) return;
  __syncthreads();
  for (int k = threadIdx.x; k < p.bins; k += kThreads) {
    if (held[k] != 0) atomicAdd(&counts[k], static_cast<unsigned long long>(held[k]));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    count_between(const T *x, const T *edges, unsigned long long *counts, const __grid_constant__ CountCall p) {
  count([&](long long i) { return bin_of(x[i], edges, p.bins); }, counts, p);
}

__global__ void __launch_bounds__(kThreads)
    count_places(const long long *places, unsigned long long *counts, const __grid_constant__ CountCall p) {
  count([&](long long i) { return places[i]; }, counts, p);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    place_between(const T *x, const T *edges, long long *places, const __grid_constant__ CountCall p) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.size) places[i] = bin_of(x[i], edges, p.bins);
}

// The first position of an element that is not below the value, in ascending places.
__device__ __forceinline__ long long first_of(const long long *places, long long size, long long value) {
  long long low = 0, high = size;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (places[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// sums[k] = the weights of the run of places k. A block a bin: each thread adds every 256th, then a tree adds threads.
__global__ void __launch_bounds__(kThreads) sum_runs(const long long *places, const double *weights, double *sums,
                                                     const __grid_constant__ CountCall p) {
  __shared__ double parts[kThreads];
  const int thread = threadIdx.x;
  for (long long bin = blockIdx.x; bin < p.bins; bin += gridDim.x) {
    const long long begin = first_of(places, p.size, bin), end = first_of(places, p.size, bin + 1);
    double sum = 0;
    for (long long i = begin + thread; i < end; i += kThreads) sum += weights[i];
    parts[thread] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (thread < half) parts[thread] += parts[thread + half];
      __syncthreads();
    }
    if (thread == 0) sums[bin] = parts[0];
    __syncthreads();
  }
}

}  // namespace pk
