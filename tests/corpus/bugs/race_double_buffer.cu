// Diffusion in two buffers that change places after every step, before every thread has taken the step.
#define BLOCK 64

extern "C" __global__ void diffuse(const float* in, float* out, int steps)
{
    __shared__ float buffer[2][BLOCK];
    int now = 0, i = blockIdx.x * BLOCK + threadIdx.x, next = (threadIdx.x + 1) % BLOCK;
    buffer[now][threadIdx.x] = in[i];
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        float ahead = buffer[now][next];                                           // BUG
        buffer[1 - now][threadIdx.x] = 0.5f * (buffer[now][threadIdx.x] + ahead);  // AND
#ifdef FIXED
        __syncthreads();
#endif
        now = 1 - now;
    }
    out[i] = buffer[now][threadIdx.x];
}
