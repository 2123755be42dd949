// hash_insert.cu: distinct keys put into an open-addressing table by compare-and-swap; duplicates are counted.
#define EMPTY 0
__global__ void hash_insert(const unsigned *keys, unsigned *table, int *counts, int slots, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned key = keys[i];
  int slot = (int)((key * 2654435761u) % (unsigned)slots);
  while (true) {
    unsigned found = atomicCAS(&table[slot], EMPTY, key);
    if (found == EMPTY || found == key) break;
    slot = (slot + 1) % slots;
  }
  atomicAdd(&counts[slot], 1);
}
