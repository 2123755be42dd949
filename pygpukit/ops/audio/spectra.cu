// spectra.cu: from samples to spectra in one pass: the signal's continuation, the window, the transform of each frame,
// and its magnitudes, power, or the sums of its power in bands and their logarithm.
#include "fft.cuh"

namespace pk {

constexpr int kComplex = 0;
constexpr int kMagnitude = 1;
constexpr int kPower = 2;
constexpr int kBands = 4;  // added: sums in bands
constexpr int kLog = 8;    // added: log10 of them

struct SpectraCall {
  long long lines;    // frames of all signals
  long long frames;   // of one
  long long samples;  // of one
  long long start;    // of the first frame
  long long hop;
  double amin;  // kLog: what a logarithm is taken of, at least
  int form;
  int mode;   // how the signal goes on: 0 zeros, 1 edge, 2 reflect, 3 symmetric
  int bands;  // how many
  int lines_first[2];
};

__device__ __forceinline__ long long folded(long long at, long long turn) { return ((at % turn) + turn) % turn; }

template <class R>
__device__ __forceinline__ R continued(const R *y, long long at, const SpectraCall &call) {
  const long long n = call.samples;
  if (at >= 0 && at < n) return y[at];
  if (call.mode == 0 || n == 0) return R(0);
  if (call.mode == 1 || n == 1) return y[at < 0 ? 0 : n - 1];
  const long long turn = call.mode == 2 ? 2 * (n - 1) : 2 * n;
  const long long inside = folded(at, turn);
  return y[inside < n ? inside : turn - inside - (call.mode == 3)];
}

// One frame, its even samples as real parts, its odd ones as imaginary parts.
template <class R>
struct Frame {
  const R *y, *window;
  const SpectraCall &call;
  long long begin;
  bool exists;

  __device__ __forceinline__ Frame(const R *y, const R *window, const SpectraCall &call, long long line)
      : window(window), call(call), exists(line < call.lines) {
    const long long item = exists ? line / call.frames : 0;
    this->y = y + item * call.samples;
    begin = call.start + (line - item * call.frames) * call.hop;
  }
  __device__ __forceinline__ R at(int i) const { return continued(y, begin + i, call) * window[i]; }
  __device__ __forceinline__ complex_t<R> load(int i) const { return {at(2 * i), at(2 * i + 1)}; }
};

__device__ __forceinline__ float root(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double root(double x) { return ::sqrt(x); }
__device__ __forceinline__ float decimal(float x) { return ::log10f(x); }
__device__ __forceinline__ double decimal(double x) { return ::log10(x); }

template <class R>
__device__ __forceinline__ R sized(complex_t<R> z, int form) {
  const R power = z.re * z.re + z.im * z.im;
  return form & kMagnitude ? root(power) : power;
}

// Frames of 2 N samples, N the product of the radices, Lines of them in a block. table: of steps(), and exp(-pi i k /
// N) for k from 0 to N - 1 after it. extents: of each band its first bin, how many it has, and where its weights begin.
template <class R, int Lines, int... Radices>
__global__ void __launch_bounds__(Lines *((Radices * ...) / largest(Radices...)))
    spectra(const R *y, const R *window, const complex_t<R> *table, const R *weights, const int *extents, R *out,
            const __grid_constant__ SpectraCall call) {
  constexpr int N = (Radices * ...), Threads = N / largest(Radices...);
  extern __shared__ double2 spectra_memory[];
  const Shared<R, N, leading(Radices...)> shared{reinterpret_cast<complex_t<R> *>(spectra_memory)};
  const auto make_line = [&](int line) {
    return Frame<R>(y, window, call, static_cast<long long>(blockIdx.x) * Lines + line);
  };
  steps<Lines, Radices...>(shared, table, call, make_line, [&](auto &held, Place place) { keep(held, shared, place); });
  const Place place = Place::of<Lines, Threads>(false);
  const long long line = static_cast<long long>(blockIdx.x) * Lines + place.line;
  const bool exists = line < call.lines;
  R *own = out + line * (N + 1) * (call.form == kComplex ? 2 : 1);
  for (int k = place.lane; 2 * k <= N; k += Threads) {
    // Values k and N - k of the frame, of the values of N complex numbers that hold two samples each.
    const complex_t<R> z = shared.at(place.line, k), other = shared.at(place.line, k == 0 ? 0 : N - k);
    const complex_t<R> sum = {(z.re + other.re) * R(0.5), (z.im - other.im) * R(0.5)};
    const complex_t<R> odd =
        multiply(complex_t<R>{(z.im + other.im) * R(0.5), (other.re - z.re) * R(0.5)}, table[N + k]);
    const complex_t<R> low = add(sum, odd), high = conjugate(subtract(sum, odd));
    if (call.form & kBands) {
      // Sizes take the place of the values that they came from; bin N has none of its own.
      const R first = sized(low, call.form), second = sized(high, call.form);
      shared.at(place.line, k) = {first, k == 0 ? second : R(0)};
      if (k != 0 && 2 * k != N) shared.at(place.line, N - k) = {second, R(0)};
    } else if (exists && call.form == kComplex) {
      own[2 * k] = low.re;
      own[2 * k + 1] = low.im;
      own[2 * (N - k)] = high.re;
      own[2 * (N - k) + 1] = high.im;
    } else if (exists) {
      own[k] = sized(low, call.form);
      own[N - k] = sized(high, call.form);
    }
  }
  if ((call.form & kBands) == 0) return;
  __syncthreads();
  if (!exists) return;
  for (int band = place.lane; band < call.bands; band += Threads) {
    const int first = extents[3 * band], count = extents[3 * band + 1];
    const R *weight = weights + extents[3 * band + 2];
    R total = R(0);
    for (int i = 0; i < count; ++i) {
      const int bin = first + i;
      total += weight[i] * (bin < N ? shared.at(place.line, bin).re : shared.at(place.line, 0).im);
    }
    if (call.form & kLog) total = decimal(total > R(call.amin) ? total : R(call.amin));
    out[line * call.bands + band] = total;
  }
}

}  // namespace pk
