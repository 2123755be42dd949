// Graphs that take and give back memory, captured and node by node; a host function that is called like a template of
// kernels; half floats by way of mma.h.
// output: captured 2 4 6 8
// output: again 2 4 6 8
// output: made 30
// output: next 31
// output: kept 7
// output: taken again 8
// output: half 1.5
#include <cstdio>
#include <mma.h>

template <int Factor>
__global__ void scale(int *to, const int *from) { to[threadIdx.x] = Factor * from[threadIdx.x]; }
__global__ void put(int *where, int value) { *where = value; }
__global__ void halve(half *x) { *x = __float2half(__half2float(*x) / 2); }

void scale(const char *name, int *device, cudaGraphExec_t graph, cudaStream_t stream)
{
    int host[4];
    cudaGraphLaunch(graph, stream);
    cudaMemcpyAsync(host, device, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    std::printf("%s %d %d %d %d\n", name, host[0], host[1], host[2], host[3]);
}

int main()
{
    const int start[4] = {1, 2, 3, 4};
    int *device, *temporary, answer = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreate(&stream);
    cudaMalloc(&device, sizeof start);

    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&temporary, sizeof start, stream);
    cudaMemcpyAsync(temporary, start, sizeof start, cudaMemcpyHostToDevice, stream);
    scale<2><<<1, 4, 0, stream>>>(device, temporary);
    cudaFreeAsync(temporary, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    scale("captured", device, executable, stream);
    scale("again", device, executable, stream);
    cudaGraphExecDestroy(executable);

    for (int value = 30; value < 32; ++value) {
        cudaGraphNode_t take, launch, copy, give;
        cudaMemAllocNodeParams memory = {};
        memory.poolProps.allocType = cudaMemAllocationTypePinned;
        memory.poolProps.location = {cudaMemLocationTypeDevice, 0};
        memory.bytesize = sizeof(int);
        cudaGraphCreate(&graph, 0);
        cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &memory);
        void *arguments[] = {&memory.dptr, &value};
        cudaKernelNodeParams kernel = {};
        kernel.func = (void *)put;
        kernel.gridDim = kernel.blockDim = dim3(1);
        kernel.kernelParams = arguments;
        cudaGraphAddKernelNode(&launch, graph, &take, 1, &kernel);
        cudaGraphAddMemcpyNode1D(&copy, graph, &launch, 1, &answer, memory.dptr, sizeof answer, cudaMemcpyDeviceToHost);
        cudaGraphAddMemFreeNode(&give, graph, &copy, 1, memory.dptr);
        cudaGraphInstantiate(&executable, graph, 0);
        cudaGraphDestroy(graph);
        cudaGraphLaunch(executable, stream);
        cudaStreamSynchronize(stream);
        std::printf("%s %d\n", value == 30 ? "made" : "next", answer);
        cudaGraphExecDestroy(executable);
    }

    for (int value = 7; value < 9; ++value) {  // what a graph does not give back, the program does
        cudaGraphNode_t launch;
        if (value == 7) {
            cudaGraphNode_t take;
            cudaMemAllocNodeParams memory = {};
            memory.poolProps.allocType = cudaMemAllocationTypePinned;
            memory.poolProps.location = {cudaMemLocationTypeDevice, 0};
            memory.bytesize = sizeof(int);
            cudaGraphCreate(&graph, 0);
            cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &memory);
            temporary = (int *)memory.dptr;
            void *arguments[] = {&temporary, &value};
            cudaKernelNodeParams kernel = {};
            kernel.func = (void *)put;
            kernel.gridDim = kernel.blockDim = dim3(1);
            kernel.kernelParams = arguments;
            cudaGraphAddKernelNode(&launch, graph, &take, 1, &kernel);
            cudaGraphInstantiate(&executable, graph, 0);
        }
        cudaGraphLaunch(executable, stream);
        if (value == 8) put<<<1, 1, 0, stream>>>(temporary, value);
        cudaMemcpyAsync(&answer, temporary, sizeof answer, cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        std::printf("%s %d\n", value == 7 ? "kept" : "taken again", answer);
        cudaFree(temporary);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);

    half *small, one = __float2half(3);
    cudaMalloc(&small, sizeof one);
    cudaMemcpy(small, &one, sizeof one, cudaMemcpyHostToDevice);
    halve<<<1, 1>>>(small);
    cudaMemcpy(&one, small, sizeof one, cudaMemcpyDeviceToHost);
    std::printf("half %g\n", __half2float(one));
    cudaFree(small);
    cudaFree(device);
    cudaStreamDestroy(stream);
    return 0;
}
