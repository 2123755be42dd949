// yin_curve.cu: YIN's difference function: how much each frame differs from itself, shifted by each lag.
#include "numeric.cuh"

namespace pk {

struct YinWork {
  long long frames;        // of each line
  long long stride, hop;   // samples from line to line, from frame to frame
  long long length, lags;  // of a frame; lags 0 .. lags - 1
  long long total;         // lines * frames * lags
};

constexpr int kTogether = 32;  // squares added in the type of the samples; such sums are added in double

// out: (lines, frames, lags). Beyond its end a frame is zero.
template <class T>
__global__ void __launch_bounds__(256) yin_difference(const T *x, T *out, const __grid_constant__ YinWork work) {
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= work.total) return;
  const long long lag = index % work.lags, frame = index / work.lags;
  const T *const samples = x + frame / work.frames * work.stride + frame % work.frames * work.hop;
  double total = 0;
  for (long long begin = 0; begin < work.length; begin += kTogether) {
    const long long end = begin + kTogether < work.length ? begin + kTogether : work.length;
    T sum = 0;
    for (long long i = begin; i < end; ++i) {
      const T difference = samples[i] - (i + lag < work.length ? samples[i + lag] : T(0));
      sum += difference * difference;
    }
    total += sum;
  }
  out[index] = static_cast<T>(total);
}

}  // namespace pk
