// fft_shared.cu: radix-2 Fourier transforms of 64 points in shared memory, decimation in time, one block a signal.
#define COUNT 64
#define BITS 6
__global__ void fft_shared(const float2 *in, float2 *out) {
  __shared__ float2 points[COUNT];
  int start = blockIdx.x * COUNT;
  for (int k = threadIdx.x; k < COUNT; k += COUNT / 2) points[__brev(k) >> (32 - BITS)] = in[start + k];
  __syncthreads();
  for (int half = 1; half < COUNT; half *= 2) {
    int k = threadIdx.x % half;
    int low = threadIdx.x / half * 2 * half + k;
    int high = low + half;
    float sine;
    float cosine;
    sincosf(-3.14159265f * k / half, &sine, &cosine);
    float2 a = points[low];
    float2 b = points[high];
    float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    points[low] = make_float2(a.x + turned.x, a.y + turned.y);
    points[high] = make_float2(a.x - turned.x, a.y - turned.y);
    __syncthreads();
  }
  for (int k = threadIdx.x; k < COUNT; k += COUNT / 2) out[start + k] = points[k];
}
