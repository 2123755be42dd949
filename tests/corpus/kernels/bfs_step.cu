// bfs_step.cu: one level of a breadth-first search: the frontier's unvisited neighbours get a distance and a place.
__global__ void bfs_step(const int *starts, const int *neighbours, int *distances, const int *frontier, int *next,
                         int *next_count, int level, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int node = frontier[i];
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    int neighbour = neighbours[k];
    if (atomicCAS(&distances[neighbour], -1, level) == -1) next[atomicAdd(next_count, 1)] = neighbour;
  }
}
