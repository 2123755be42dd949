// measure.cu: kernels to measure with: the device's limits, a cold cache, and a pause in front of a timed launch.
namespace pk {

constexpr int kWords = 4;    // 16-byte words a thread has in flight
constexpr int kChains = 16;  // independent sums a thread keeps busy
constexpr int kUnroll = 16;

// dst = src: words 16-byte words, a block moves blockDim.x * kWords of them.
__global__ void copy_words(uint4 *__restrict__ dst, const uint4 *__restrict__ src, long long words) {
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x * kWords + threadIdx.x;
  uint4 held[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const long long i = first + static_cast<long long>(k) * blockDim.x;
    if (i < words) held[k] = src[i];
  }
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const long long i = first + static_cast<long long>(k) * blockDim.x;
    if (i < words) dst[i] = held[k];
  }
}

// rounds * kUnroll * kChains fused multiply-adds a thread. The sums are stored only if they reach a value they cannot
// reach, which the compiler does not know.
__global__ void fma_chains(float *out, float factor, float term, int rounds) {
  float sum[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) sum[k] = static_cast<float>(threadIdx.x + k);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kUnroll; ++step) {
#pragma unroll
      for (int k = 0; k < kChains; ++k) sum[k] = fmaf(sum[k], factor, term);
    }
  }
  float all = 0.0f;
#pragma unroll
  for (int k = 0; k < kChains; ++k) all += sum[k];
  if (all < 0.0f) out[0] = all;
}

// Reads a buffer of several times the cache, so that what was in the cache is not, and no line is left to write back.
__global__ void read_words(const uint4 *__restrict__ src, long long words, unsigned *sink) {
  unsigned seen = 0;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    const uint4 word = src[i];
    seen |= word.x | word.y | word.z | word.w;
  }
  if (seen != 0) *sink = seen;  // the buffer is all zeros
}

// Keeps the stream busy for about `cycles`, while the host queues what comes next.
__global__ void pause(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

}  // namespace pk
