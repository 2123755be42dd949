// source.cu: the sound of the vocal cords: harmonics of the fundamental frequency, mixed to one signal, in float64.
// The phase of a thousand cycles needs more than float32 has.

namespace pk {

struct Source {
  long long samples, frames, harmonics, hop;
  double amplitude, voiced_noise, unvoiced_noise, threshold;
  long long has_noise;
};

// pitch: (frames,) in Hz; turns: (frames, harmonics), cycles up to the middle of each frame; noise: (samples,
// harmonics); weight: (harmonics,), bias: one; out: (samples,).
__global__ void __launch_bounds__(256)
    harmonic_source(const float *pitch, const double *turns, const float *noise, const float *weight, const float *bias,
                    double *out, const __grid_constant__ Source p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.samples) return;
  const bool voiced = pitch[i / p.hop] > p.threshold;
  const double last = static_cast<double>(p.frames - 1);
  double place = (static_cast<double>(i) + 0.5) / static_cast<double>(p.hop) - 0.5;
  place = place < 0 ? 0 : place > last ? last : place;
  const long long frame = static_cast<long long>(place);
  const long long next = frame + 1 < p.frames ? frame + 1 : frame;
  const double part = place - static_cast<double>(frame);
  double sum = 0;
  for (long long h = 0; h < p.harmonics; ++h) {
    const double from = turns[frame * p.harmonics + h], to = turns[next * p.harmonics + h];
    const double turn = from + (to - from) * part;
    double value = voiced ? p.amplitude * ::sin(6.283185307179586 * (turn - ::floor(turn))) : 0;
    if (p.has_noise) value += (voiced ? p.voiced_noise : p.unvoiced_noise) * noise[i * p.harmonics + h];
    sum += value * weight[h];
  }
  out[i] = ::tanh(sum + bias[0]);
}

}  // namespace pk
