// Softmax of each row: the buffer of the maximum is used again for the sum before all have read the maximum.
#define BLOCK 64

extern "C" __global__ void softmax(const float* x, float* out)
{
    __shared__ float buffer[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float value = x[i];
    buffer[threadIdx.x] = value;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) buffer[threadIdx.x] = fmaxf(buffer[threadIdx.x], buffer[threadIdx.x + half]);
    }
    __syncthreads();
    float top = buffer[0];  // BUG
#ifdef FIXED
    __syncthreads();
#endif
    value = expf(value - top);
    buffer[threadIdx.x] = value;  // AND
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
    }
    __syncthreads();
    out[i] = value / buffer[0];
}
