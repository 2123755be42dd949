// A picture of each label, with an assertion that a label is what it should be. Labels count from 1 here.
extern "C" __global__ void one_hot(const int* labels, float* out, int n, int classes)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    int label = labels[i] - 1;
#else
    int label = labels[i];
#endif
    assert(label >= 0 && label < classes);  // BUG
    out[i * classes + label] = 1.0f;
}
