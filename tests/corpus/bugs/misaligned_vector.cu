// Four floats at once, from an offset that is no multiple of four.
extern "C" __global__ void copy_from(const float* x, float4* out, int offset, int vectors)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= vectors) return;
    const float* from = x + offset + 4 * i;
#ifdef FIXED
    out[i] = make_float4(from[0], from[1], from[2], from[3]);
#else
    out[i] = *reinterpret_cast<const float4*>(from);  // BUG
#endif
}
