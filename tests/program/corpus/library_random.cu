// cuRAND from the host: uniform and normal numbers, the same again from the same seed.
// output: uniform: mean near 0.5 yes, all in (0, 1] yes
// output: normal: mean near 2 yes, deviation near 3 yes
// output: the same again: yes
#include <curand.h>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int n = 10000;
  float *device;
  cudaMalloc(&device, n * sizeof(float));
  std::vector<float> first(n), normal(n), again(n);
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, 1234ULL);
  curandGenerateUniform(generator, device, n);
  cudaMemcpy(first.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
  curandGenerateNormal(generator, device, n, 2.0f, 3.0f);
  cudaMemcpy(normal.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
  curandSetPseudoRandomGeneratorSeed(generator, 1234ULL);
  curandGenerateUniform(generator, device, n);
  cudaMemcpy(again.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
  double mean = 0, centre = 0, spread = 0;
  bool inside = true;
  for (int i = 0; i < n; ++i) {
    mean += first[i] / n;
    centre += normal[i] / n;
    inside &= first[i] > 0 && first[i] <= 1;
  }
  for (int i = 0; i < n; ++i) spread += (normal[i] - centre) * (normal[i] - centre) / n;
  std::printf("uniform: mean near 0.5 %s, all in (0, 1] %s\n", std::fabs(mean - 0.5) < 0.02 ? "yes" : "no",
              inside ? "yes" : "no");
  std::printf("normal: mean near 2 %s, deviation near 3 %s\n", std::fabs(centre - 2) < 0.15 ? "yes" : "no",
              std::fabs(std::sqrt(spread) - 3) < 0.15 ? "yes" : "no");
  std::printf("the same again: %s\n", first == again ? "yes" : "no");
  curandDestroyGenerator(generator);
  cudaFree(device);
  return 0;
}
