// The depth of each node of a forest: a root is its own parent, and two of the nodes are each other's.
extern "C" __global__ void depths(const int* parents, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int node = i, steps = 0;
#ifdef FIXED
    while (parents[node] != node && steps < n) {
#else
    while (parents[node] != node) {  // BUG
#endif
        node = parents[node];  // BUG
        ++steps;  // BUG
    }
    out[i] = steps;
}
