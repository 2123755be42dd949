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

}  // namespace pk
