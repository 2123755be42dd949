// Kernels that share a name: plain ones, templates, a specialisation; and arguments by default.
// output: plain 3 2.5, templates 8 4.5, special -1
// output: default 12, chosen 6, by pointer 20
#include <cstdio>

__global__ void put(int *where, int value) { *where = value; }
__global__ void put(float *where, float value) { *where = value; }
__global__ void put(int *where);  // defined below
template <class T>
__global__ void move(T *where, T by) {
  *where += by;
}
template <class T>
__global__ void move(T *where, T by, int times) {
  *where += by * times;
}
template <>
__global__ void move<int>(int *where, int by, int times) {
  *where = times - 2 - by;
}
template <class T, int N = 4, class U = T>
__global__ void scale(T *where, U by) {
  *where = T(by * N);
}

int whole(int *device) {
  int host;
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  return host;
}
float part(float *device) {
  float host;
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  return host;
}

int main() {
  int *i;
  float *f;
  cudaMalloc(&i, sizeof(int));
  cudaMalloc(&f, sizeof(float));
  put<<<1, 1>>>(i, 3);
  put<<<1, 1>>>(f, 2.5f);
  std::printf("plain %d %g", whole(i), part(f));
  move<<<1, 1>>>(i, 5);
  move<<<1, 1>>>(f, 1.0f, 2);
  std::printf(", templates %d %g", whole(i), part(f));
  move<<<1, 1>>>(i, 1, 2);
  std::printf(", special %d\n", whole(i));
  scale<<<1, 1>>>(i, 3);
  std::printf("default %d", whole(i));
  scale<int, 2><<<1, 1>>>(i, 3.0f);
  std::printf(", chosen %d", whole(i));
  void (*chosen)(int *) = put;
  chosen<<<1, 1>>>(i);
  std::printf(", by pointer %d\n", whole(i));
  cudaFree(i);
  cudaFree(f);
  return 0;
}
__global__ void put(int *where) { *where = 20; }
