// overlap.cu: windowed overlap-add, one thread a sample: it walks the frames that cover it, first to last.
#include "numeric.cuh"

namespace pk {

struct Adding {
  long long samples;  // of one signal
  long long blocks;   // of one signal
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

// A signal has less than 2^32 samples: a division of 64 bits costs as much as all the rest.
template <class T>
__global__ void __launch_bounds__(256) overlap_add(const T *pieces, const T *window, T *out, Adding call) {
  const unsigned item = blockIdx.x / static_cast<unsigned>(call.blocks);
  const unsigned block = blockIdx.x - item * static_cast<unsigned>(call.blocks);
  const unsigned i = block * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(call.samples)) return;
  const unsigned hop = static_cast<unsigned>(call.hop), length = static_cast<unsigned>(call.length);
  const unsigned place = i + static_cast<unsigned>(call.start), end = static_cast<unsigned>(call.frames);
  const unsigned covered = place / hop + 1, behind = covered < end ? covered : end;
  unsigned frame = place < length ? 0 : (place - length) / hop + 1;
  const T *piece = pieces + (item * call.frames + frame) * call.length;
  T sum = T(0);
  double squares = 0;
  for (; frame < behind; ++frame, piece += call.length) {
    const unsigned inside = place - frame * hop;
    const T w = window[inside];
    sum += w * piece[inside];
    squares += static_cast<double>(w) * static_cast<double>(w);
  }
  const T divisor = static_cast<T>(squares);
  out[item * call.samples + i] = divisor > smallest<T>::value ? sum / divisor : sum;
}

}  // namespace pk
