// overlap.cu: windowed overlap-add, one thread a sample: it walks the frames that cover it, first to last.
#include "numeric.cuh"

namespace pk {

struct Adding {
  long long size;     // samples of all signals
  long long samples;  // of one
  long long start;    // of the whole, where the result begins
  long long frames;
  long long length;  // of a frame
  long long hop;
};

template <class T> struct smallest;
template <> struct smallest<float> {
  static constexpr float value = 1.17549435e-38f;
};
template <> struct smallest<double> {
  static constexpr double value = 2.2250738585072014e-308;
};

template <class T>
__global__ void __launch_bounds__(256) overlap_add(const T *pieces, const T *window, T *out, Adding call) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.size) return;
  const long long item = i / call.samples, place = i - item * call.samples + call.start;
  const long long last = place / call.hop < call.frames - 1 ? place / call.hop : call.frames - 1;
  const long long behind = place - call.length + 1;
  const long long first = behind <= 0 ? 0 : (behind + call.hop - 1) / call.hop;
  const T *own = pieces + item * call.frames * call.length;
  T sum = T(0);
  double squares = 0;
  for (long long frame = first; frame <= last; ++frame) {
    const long long inside = place - frame * call.hop;
    const T w = window[inside];
    sum += w * own[frame * call.length + inside];
    squares += static_cast<double>(w) * static_cast<double>(w);
  }
  const T divisor = static_cast<T>(squares);
  out[i] = divisor > smallest<T>::value ? sum / divisor : sum;
}

}  // namespace pk
