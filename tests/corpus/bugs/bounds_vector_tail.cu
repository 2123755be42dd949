// Four floats a thread, with the count rounded up: the last vector is only half there.
extern "C" __global__ void sum_of_four(const float* x, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (n + 3) / 4) return;
#ifdef FIXED
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (4 * i + 3 < n) {
        v = reinterpret_cast<const float4*>(x)[i];
    } else {
        v.x = x[4 * i];
        if (4 * i + 1 < n) v.y = x[4 * i + 1];
        if (4 * i + 2 < n) v.z = x[4 * i + 2];
    }
#else
    float4 v = reinterpret_cast<const float4*>(x)[i];  // BUG
#endif
    out[i] = v.x + v.y + v.z + v.w;
}
