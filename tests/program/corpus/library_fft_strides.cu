// cuFFT: the columns of a matrix by strides, rows that lie apart, and real rows; what lies between them stays.
// output: columns as by hand: yes
// output: between the rows: 5 5, peaks 1 2
#include <cufft.h>

#include <cmath>
#include <cstdio>

int main() {
  const int rows = 6, columns = 4;
  cufftComplex host[rows * columns], result[rows * columns], *device;
  for (int i = 0; i < rows * columns; ++i) host[i] = {float(i * i % 7), float(i % 3)};
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  int extent[] = {rows};
  cufftHandle plan;
  if (cufftPlanMany(&plan, 1, extent, extent, columns, 1, extent, columns, 1, CUFFT_C2C, columns) != CUFFT_SUCCESS)
    return 1;
  cufftExecC2C(plan, device, device, CUFFT_FORWARD);
  cudaMemcpy(result, device, sizeof result, cudaMemcpyDeviceToHost);
  bool same = true;
  for (int column = 0; column < columns; ++column)
    for (int k = 0; k < rows; ++k) {
      double real = 0, imaginary = 0;
      for (int row = 0; row < rows; ++row) {
        const double angle = -2 * 3.14159265358979 * k * row / rows;
        const cufftComplex x = host[row * columns + column];
        real += x.x * std::cos(angle) - x.y * std::sin(angle);
        imaginary += x.x * std::sin(angle) + x.y * std::cos(angle);
      }
      const cufftComplex got = result[k * columns + column];
      same &= std::fabs(got.x - real) < 1e-4 && std::fabs(got.y - imaginary) < 1e-4;
    }
  std::printf("columns as by hand: %s\n", same ? "yes" : "no");
  cufftDestroy(plan);

  const int n = 8, apart = 10, apart_out = 6;
  float waves[2 * apart], *device_waves;
  cufftComplex spectra[2 * apart_out], *device_spectra;
  for (int row = 0; row < 2; ++row)
    for (int i = 0; i < n; ++i) waves[row * apart + i] = float(std::cos(2 * 3.14159265358979 * (row + 1) * i / n));
  for (cufftComplex &one : spectra) one = {5, 5};
  cudaMalloc(&device_waves, sizeof waves);
  cudaMalloc(&device_spectra, sizeof spectra);
  cudaMemcpy(device_waves, waves, sizeof waves, cudaMemcpyHostToDevice);
  cudaMemcpy(device_spectra, spectra, sizeof spectra, cudaMemcpyHostToDevice);
  int length[] = {n}, embed_in[] = {apart}, embed_out[] = {apart_out};
  cufftPlanMany(&plan, 1, length, embed_in, 1, apart, embed_out, 1, apart_out, CUFFT_R2C, 2);
  cufftExecR2C(plan, device_waves, device_spectra);
  cudaMemcpy(spectra, device_spectra, sizeof spectra, cudaMemcpyDeviceToHost);
  int peaks[2] = {0, 0};
  for (int row = 0; row < 2; ++row)
    for (int i = 1; i <= n / 2; ++i)
      if (cuCabsf(spectra[row * apart_out + i]) > cuCabsf(spectra[row * apart_out + peaks[row]])) peaks[row] = i;
  std::printf("between the rows: %g %g, peaks %d %d\n", spectra[5].x, spectra[apart_out + 5].y, peaks[0], peaks[1]);
  cufftDestroy(plan);
  cudaFree(device);
  cudaFree(device_waves);
  cudaFree(device_spectra);
  return 0;
}
