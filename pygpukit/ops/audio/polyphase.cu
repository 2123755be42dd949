// polyphase.cu: FIR filters that raise and lower the rate at once, as one sum over the taps of an output's phase.
#include "numeric.cuh"

namespace pk {

struct PolyphaseWork {
  long long lines, length, outputs;  // samples in, samples out, each line
  long long up, down, first;         // output m is at place first + m * down of the raised signal
  long long taps;                    // of each phase: the filter is stored by phases, (up, taps), zeros behind it
};

constexpr int kTogether = 32;  // products added in the type of the samples; such sums are added in double

// x: (lines, length), zeros around it. out[m] = sum of filter[place - up * i] * x[i].
template <class T>
__global__ void __launch_bounds__(256)
    polyphase(const T *x, const T *filter, T *out, const __grid_constant__ PolyphaseWork work) {
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= work.lines * work.outputs) return;
  const long long line = index / work.outputs;
  const long long place = work.first + (index - line * work.outputs) * work.down;
  const long long latest = place / work.up;
  const T *const taps = filter + (place - latest * work.up) * work.taps;
  const T *const samples = x + line * work.length;
  long long begin = latest - (work.length - 1);
  if (begin < 0) begin = 0;
  const long long end = latest + 1 < work.taps ? latest + 1 : work.taps;
  double total = 0;
  while (begin < end) {
    const long long stop = begin + kTogether < end ? begin + kTogether : end;
    T sum = 0;
    for (; begin < stop; ++begin) sum += taps[begin] * samples[latest - begin];
    total += sum;
  }
  out[index] = static_cast<T>(total);
}


constexpr int kOutputs = 7;    // of a thread and a phase; odd, so that a warp's reads meet few of each other's banks
constexpr int kProducts = 64;  // added in the type of the samples before the sum goes to a double

// The same for small rates, whose block keeps its samples and results in shared memory. Output q * up + p has phase p's
// taps and samples up to q * down + (first + p * down) / up: a thread has kOutputs neighbours q of each p in turn, and in
// registers the samples that they share. Taps are taken `down` apart, by which a step moves them on by one output.
template <class T>
__global__ void __launch_bounds__(128)
    polyphase_tile(const T *x, const T *filter, T *out, const __grid_constant__ PolyphaseWork work) {
  extern __shared__ double2 polyphase_memory[];
  T *const samples = reinterpret_cast<T *>(polyphase_memory);
  const int up = static_cast<int>(work.up), down = static_cast<int>(work.down), taps = static_cast<int>(work.taps);
  const int own = static_cast<int>(threadIdx.x) * kOutputs, all = static_cast<int>(blockDim.x) * kOutputs;
  const int rest = static_cast<int>(work.first % work.up);
  const int span = (all - 1) * down + (rest + (up - 1) * down) / up + taps;
  T *const results = samples + span;
  const long long tiles = (work.outputs + static_cast<long long>(all) * up - 1) / (static_cast<long long>(all) * up);
  const long long line = blockIdx.x / tiles, begin = (blockIdx.x - line * tiles) * all;
  const long long earliest = begin * down + work.first / work.up - (taps - 1);
  const T *const from = x + line * work.length;
  for (int i = threadIdx.x; i < span; i += blockDim.x) {
    const long long at = earliest + i;
    samples[i] = at >= 0 && at < work.length ? from[at] : T(0);
  }
  __syncthreads();
  for (int p = 0; p < up; ++p) {
    const int place = rest + p * down, latest = place / up;
    const T *const own_taps = filter + (place - latest * up) * taps;
    T sum[kOutputs] = {};
    double total[kOutputs] = {};
    bool whole = true;
    int products = 0;
    for (int c = 0; c < down && c < taps; ++c) {
      const T *next = samples + own * down + latest + taps - 1 - c;
      T window[kOutputs];  // of output r in step i: element (r - i) modulo kOutputs
#pragma unroll
      for (int r = 0; r < kOutputs; ++r) window[r] = next[r * down];
      for (int tap = c; tap < taps; tap += kOutputs * down) {
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
          if (tap + i * down < taps) {
            const T factor = own_taps[tap + i * down];
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) sum[r] += factor * window[(r - i + kOutputs) % kOutputs];
            next -= down;
            if (tap + (i + 1) * down < taps) window[kOutputs - 1 - i] = *next;
          }
        }
        products += kOutputs;
        if (products < kProducts) continue;
#pragma unroll
        for (int r = 0; r < kOutputs; ++r) {
          total[r] += sum[r];
          sum[r] = T(0);
        }
        products = 0;
        whole = false;
      }
    }
#pragma unroll
    for (int r = 0; r < kOutputs; ++r) {
      results[(own + r) * up + p] = whole ? sum[r] : static_cast<T>(total[r] + sum[r]);
    }
  }
  __syncthreads();
  const long long left = work.outputs - begin * up;
  T *const to = out + line * work.outputs + begin * up;
  for (int i = threadIdx.x; i < all * up && i < left; i += blockDim.x) to[i] = results[i];
}

}  // namespace pk
