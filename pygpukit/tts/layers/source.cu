// source.cu: the sound of the vocal cords: harmonics of the fundamental frequency, mixed to one signal, in float64.
// The phase of a thousand cycles needs more than float32 has. Sentences lie one after the other, each for itself.
#include "philox.cuh"

namespace pk {

struct Source {
  long long harmonics, hop;
  double rate, amplitude, voiced_noise, unvoiced_noise, threshold;
};

// pitch: in Hz; spans: first place and length of each sentence in it; turns: (places, harmonics), cycles up to the
// middle of each frame. A block: a sentence; a thread: a harmonic, or several.
__global__ void __launch_bounds__(32)
    source_turns(const float *pitch, const long long *spans, double *turns, const __grid_constant__ Source p) {
  const long long start = spans[2 * blockIdx.x], frames = spans[2 * blockIdx.x + 1];
  for (long long h = threadIdx.x; h < p.harmonics; h += blockDim.x) {
    double sum = 0;
#pragma unroll 8
    for (long long i = 0; i < frames; ++i) {
      const double step = static_cast<double>(pitch[start + i]) * static_cast<double>(h + 1) / p.rate;
      sum += step - ::floor(step);
      turns[(start + i) * p.harmonics + h] = sum * static_cast<double>(p.hop);
    }
  }
}

// The noise of sample i: element i harmonics + h of what Generator(seed).normal(0, 1, ..., "float32") makes first.
__device__ __forceinline__ void add_noise(unsigned long long seed, long long first, long long count,
                                          const float *weight, double deviation, double *sum) {
  for (long long index = first / 4; index <= (first + count - 1) / 4; ++index) {
    const Words words = philox(seed, index, 0);
    float z[4];
    fixed::normal_pair(words.w[0], words.w[1], &z[0], &z[1]);
    fixed::normal_pair(words.w[2], words.w[3], &z[2], &z[3]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const long long h = 4 * index + k - first;
      if (h >= 0 && h < count) *sum += deviation * z[k] * weight[h];
    }
  }
}

// seeds: a sentence's, and whether it has noise; weight: (harmonics,), bias: one; out: (places hop,), zero between
// sentences already. Grid: samples of the longest sentence, sentences.
__global__ void __launch_bounds__(256)
    harmonic_source(const float *pitch, const double *turns, const long long *spans, const unsigned long long *seeds,
                    const float *weight, const float *bias, double *out, const __grid_constant__ Source p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, sentence = blockIdx.y;
  const long long start = spans[2 * sentence], frames = spans[2 * sentence + 1];
  if (i >= frames * p.hop) return;
  const bool voiced = pitch[start + i / p.hop] > p.threshold;
  const double last = static_cast<double>(frames - 1);
  double place = (static_cast<double>(i) + 0.5) / static_cast<double>(p.hop) - 0.5;
  place = place < 0 ? 0 : place > last ? last : place;
  const long long frame = static_cast<long long>(place);
  const long long next = frame + 1 < frames ? frame + 1 : frame;
  const double part = place - static_cast<double>(frame);
  double sum = 0;
  for (long long h = 0; voiced && h < p.harmonics; ++h) {
    const double from = turns[(start + frame) * p.harmonics + h], to = turns[(start + next) * p.harmonics + h];
    const double turn = from + (to - from) * part;
    sum += p.amplitude * ::sin(6.283185307179586 * (turn - ::floor(turn))) * weight[h];
  }
  if (seeds[2 * sentence + 1]) {
    const double deviation = voiced ? p.voiced_noise : p.unvoiced_noise;
    add_noise(seeds[2 * sentence], i * p.harmonics, p.harmonics, weight, deviation, &sum);
  }
  out[start * p.hop + i] = ::tanh(sum + bias[0]);
}

}  // namespace pk
