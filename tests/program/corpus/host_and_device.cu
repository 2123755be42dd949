// One function and one class for both sides.
// output: host 25.0 device 25.0, area 6
#include <cstdio>

__host__ __device__ float square(float x) { return x * x; }
class Rectangle {
 public:
  __host__ __device__ Rectangle(int width, int height) : width_(width), height_(height) {}
  __host__ __device__ int area() const { return width_ * height_; }

 private:
  int width_, height_;
};

__global__ void compute(float *out, Rectangle rectangle, int *area) {
  *out = square(5.0f);
  *area = rectangle.area();
}

int main() {
  float *out, result;
  int *area, host_area;
  cudaMalloc(&out, sizeof(float));
  cudaMalloc(&area, sizeof(int));
  compute<<<1, 1>>>(out, Rectangle(2, 3), area);
  cudaMemcpy(&result, out, sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(&host_area, area, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("host %.1f device %.1f, area %d\n", square(5.0f), result, host_area);
  cudaFree(out);
  cudaFree(area);
  return host_area == Rectangle(2, 3).area() ? 0 : 1;
}
