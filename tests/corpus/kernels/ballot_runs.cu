// ballot_runs.cu: within a warp, how far the run of equal elements reaches to the left; also any and all votes.
__global__ void ballot_runs(const int *in, int *run, int *any_zero, int *all_small, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32;
  unsigned present = __ballot_sync(0xffffffffu, i < n);
  if (i >= n) return;
  int value = in[i];
  int before = __shfl_up_sync(present, value, 1);
  unsigned starts = __ballot_sync(present, lane == 0 || before != value);
  unsigned up_to_here = starts & (0xffffffffu >> (31 - lane));
  run[i] = lane - (31 - __clz((int)up_to_here));
  int any = __any_sync(present, value == 0);
  int all = __all_sync(present, value < 3);
  if (lane == 0) {
    any_zero[i / 32] = any;
    all_small[i / 32] = all;
  }
}
