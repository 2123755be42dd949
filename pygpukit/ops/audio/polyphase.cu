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
// registers the samples that they share. Taps are taken `down` apart, by which a step moves on by one output; they are
// stored so, (up, down, taps / down and rounded up). Long: more than kProducts of a phase.
template <class T, bool Long>
__global__ void __launch_bounds__(128)
    polyphase_tile(const T *x, const T *filter, T *out, const __grid_constant__ PolyphaseWork work) {
  extern __shared__ double2 polyphase_memory[];
  T *const samples = reinterpret_cast<T *>(polyphase_memory);
  const int up = static_cast<int>(work.up), down = static_cast<int>(work.down), taps = static_cast<int>(work.taps);
  const int own = static_cast<int>(threadIdx.x) * kOutputs, all = static_cast<int>(blockDim.x) * kOutputs;
  const int rest = static_cast<int>(work.first % work.up), before = taps - 1 + down;
  const int span = (all - 1) * down + (rest + (up - 1) * down) / up + 1 + before;
  T *const results = samples + span;
  const unsigned tiles = static_cast<unsigned>((work.outputs + all * up - 1) / (all * up));
  const long long line = blockIdx.x / tiles, begin = static_cast<long long>(blockIdx.x % tiles) * all;
  const long long earliest = begin * down + work.first / work.up - before;
  const T *const from = x + line * work.length + earliest;
  if (earliest >= 0 && earliest + span <= work.length) {
#pragma unroll 8
    for (int i = threadIdx.x; i < span; i += 128) samples[i] = from[i];
  } else {
    for (int i = threadIdx.x; i < span; i += 128) {
      samples[i] = earliest + i >= 0 && earliest + i < work.length ? from[i] : T(0);
    }
  }
  __syncthreads();
  const int max_taps = (taps + down - 1) / down;
  for (int p = 0; p < up; ++p) {
    const int place = rest + p * down, latest = place / up;
    const T *factors = filter + (place - latest * up) * down * max_taps;
    T sum[kOutputs] = {};
    double total[kOutputs] = {};
    int products = 0;
    for (int c = 0; c < down && c < taps; ++c, factors += max_taps) {
      const T *next = samples + own * down + latest + before - c;
      T window[kOutputs];  // of output r in step i: element (r - i) modulo kOutputs
#pragma unroll
      for (int r = 0; r < kOutputs; ++r) window[r] = next[r * down];
      const int count = (taps - c + down - 1) / down;
      for (int step = 0; step < count; step += kOutputs) {
        const bool whole = step + kOutputs <= count;
        T factor[kOutputs], entering[kOutputs];
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
          next -= down;
          const bool there = whole || step + i < count;
          factor[i] = there ? factors[step + i] : T(0);
          entering[i] = there ? *next : T(0);
        }
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
          if (whole || step + i < count) {
#pragma unroll
            for (int r = 0; r < kOutputs; ++r) sum[r] += factor[i] * window[(r - i + kOutputs) % kOutputs];
          }
          window[kOutputs - 1 - i] = entering[i];
        }
        if constexpr (Long) {
          products += kOutputs;
          if (products < kProducts) continue;
#pragma unroll
          for (int r = 0; r < kOutputs; ++r) {
            total[r] += sum[r];
            sum[r] = T(0);
          }
          products = 0;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kOutputs; ++r) {
      results[(own + r) * up + p] = Long ? static_cast<T>(total[r] + sum[r]) : sum[r];
    }
  }
  __syncthreads();
  const long long left = work.outputs - begin * up;
  const int kept = left < all * up ? static_cast<int>(left) : all * up;
  T *const to = out + line * work.outputs + begin * up;
#pragma unroll 4
  for (int i = threadIdx.x; i < kept; i += 128) to[i] = results[i];
}

}  // namespace pk
