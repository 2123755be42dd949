// cuFFT: a complex transform in place and back, and a real one whose peak is where the wave's number says.
// output: back to the start: yes
// output: peak at 3 of 9, largest 8.0
#include <cufft.h>
#include <cmath>
#include <cstdio>

int main() {
  const int n = 16;
  cufftComplex host[n], result[n], *device;
  for (int i = 0; i < n; ++i) host[i] = {float(i % 5), float(-i)};
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  cufftHandle plan;
  if (cufftPlan1d(&plan, n, CUFFT_C2C, 1) != CUFFT_SUCCESS) return 1;
  cufftExecC2C(plan, device, device, CUFFT_FORWARD);
  cufftExecC2C(plan, device, device, CUFFT_INVERSE);
  cudaMemcpy(result, device, sizeof result, cudaMemcpyDeviceToHost);
  bool same = true;
  for (int i = 0; i < n; ++i)
    same &= std::fabs(result[i].x / n - host[i].x) < 1e-4f && std::fabs(result[i].y / n - host[i].y) < 1e-4f;
  std::printf("back to the start: %s\n", same ? "yes" : "no");
  cufftDestroy(plan);

  float wave[n], *device_wave;
  cufftComplex spectrum[n / 2 + 1], *device_spectrum;
  for (int i = 0; i < n; ++i) wave[i] = float(std::cos(2 * 3.14159265358979 * 3 * i / n));
  cudaMalloc(&device_wave, sizeof wave);
  cudaMalloc(&device_spectrum, sizeof spectrum);
  cudaMemcpy(device_wave, wave, sizeof wave, cudaMemcpyHostToDevice);
  cufftPlan1d(&plan, n, CUFFT_R2C, 1);
  cufftExecR2C(plan, device_wave, device_spectrum);
  cudaMemcpy(spectrum, device_spectrum, sizeof spectrum, cudaMemcpyDeviceToHost);
  int peak = 0;
  for (int i = 1; i <= n / 2; ++i)
    if (cuCabsf(spectrum[i]) > cuCabsf(spectrum[peak])) peak = i;
  std::printf("peak at %d of %d, largest %.1f\n", peak, n / 2 + 1, cuCabsf(spectrum[peak]));
  cufftDestroy(plan);
  cudaFree(device);
  cudaFree(device_wave);
  cudaFree(device_spectrum);
  return same && peak == 3 ? 0 : 1;
}
