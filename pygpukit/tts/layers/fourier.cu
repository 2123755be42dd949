// fourier.cu: the vocoder's short Fourier transform and its inverse, of sentences that lie one after the other: the
// samples of a frame times small matrices.

namespace pk {

struct ShortFourier {
  long long bins, size, hop;           // size: samples of a frame
  long long place_step, channel_step;  // of the spectrum, in elements
};

constexpr int kMaxBins = 16, kBlockFrames = 128;

// signal: sentences at `signals` (first sample, length), size / 2 samples are reflected at their ends; matrix: (2 bins,
// size), real parts first. out: magnitudes, then angles of each sentence's frames at `frames`. Grid: frames of the
// longest sentence, sentences. A thread: a frame.
__global__ void __launch_bounds__(128)
    short_spectrum(const double *signal, const double *matrix, const long long *signals, const long long *frames,
                   float *out, const __grid_constant__ ShortFourier p) {
  const long long frame = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, sentence = blockIdx.y;
  if (frame >= frames[2 * sentence + 1]) return;
  const double *own = signal + signals[2 * sentence];
  const long long count = signals[2 * sentence + 1];
  double sum[2 * kMaxBins] = {};
  for (long long k = 0; k < p.size; ++k) {
    long long at = frame * p.hop - p.size / 2 + k;
    at = at < 0 ? -at : at >= count ? 2 * count - 2 - at : at;
    const double value = own[at];
#pragma unroll
    for (int b = 0; b < kMaxBins; ++b) {
      if (b < p.bins) {
        sum[2 * b] = ::fma(value, matrix[b * p.size + k], sum[2 * b]);
        sum[2 * b + 1] = ::fma(value, matrix[(p.bins + b) * p.size + k], sum[2 * b + 1]);
      }
    }
  }
  float *to = out + (frames[2 * sentence] + frame) * p.place_step;
#pragma unroll
  for (int b = 0; b < kMaxBins; ++b) {
    if (b >= p.bins) continue;
    const double real = sum[2 * b], imaginary = sum[2 * b + 1] + 0.0;  // -0 would turn pi into -pi
    to[b * p.channel_step] = static_cast<float>(::sqrt(real * real + imaginary * imaginary));
    to[(p.bins + b) * p.channel_step] = static_cast<float>(::atan2(imaginary, real));
  }
}

// spectrum: logarithms of magnitudes, then angles before their sine, of each sentence's frames; matrix: (2 bins, size),
// the inverse's; square: (size,), what a frame adds to the weight of its samples. out: sentences of hop (frames - 1)
// samples at `signals`. Grid: kBlockFrames hops of the longest sentence, sentences. Dynamic shared memory: 2 bins
// floats for each frame that a block's samples lie in.
__global__ void __launch_bounds__(128)
    short_waveform(const float *spectrum, const float *matrix, const float *square, const long long *frames,
                   const long long *signals, float *out, const __grid_constant__ ShortFourier p) {
  extern __shared__ float parts[];
  const long long sentence = blockIdx.y, count = frames[2 * sentence + 1], samples = signals[2 * sentence + 1];
  const long long first = static_cast<long long>(blockIdx.x) * kBlockFrames * p.hop;  // sample
  if (first >= samples) return;
  // Sample n lies at n + size / 2 of what the frames make: in frames from (n + size / 2 - size) / hop + 1 on.
  const long long over = (p.size + p.hop - 1) / p.hop;  // frames that a sample lies in, at most
  const long long frame0 = (first + p.size / 2) / p.hop - over + 1;
  const long long needed = kBlockFrames + over;
  for (long long i = threadIdx.x; i < needed * p.bins; i += blockDim.x) {
    const long long place = i / p.bins, bin = i % p.bins, frame = frame0 + place;
    float real = 0, imaginary = 0;
    if (frame >= 0 && frame < count) {
      const float *from = spectrum + (frames[2 * sentence] + frame) * p.place_step;
      const float magnitude = ::expf(from[bin * p.channel_step]);
      const float angle = ::sinf(from[(p.bins + bin) * p.channel_step]);
      real = magnitude * ::cosf(angle);
      imaginary = magnitude * ::sinf(angle);
    }
    parts[place * 2 * p.bins + bin] = real;
    parts[place * 2 * p.bins + p.bins + bin] = imaginary;
  }
  __syncthreads();
  for (long long i = threadIdx.x; i < kBlockFrames * p.hop; i += blockDim.x) {
    if (first + i >= samples) continue;
    const long long middle = first + i + p.size / 2, latest = middle / p.hop;
    float sum = 0, weight = 0;
    for (long long frame = latest - over + 1; frame <= latest; ++frame) {
      const long long k = middle - frame * p.hop;
      if (frame < 0 || frame >= count || k >= p.size) continue;
      const float *part = parts + (frame - frame0) * 2 * p.bins;
      for (long long b = 0; b < 2 * p.bins; ++b) sum = ::fmaf(part[b], matrix[b * p.size + k], sum);
      weight += square[k];
    }
    out[signals[2 * sentence] + first + i] = sum / weight;
  }
}

}  // namespace pk
