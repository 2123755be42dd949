// mandelbrot.cu: steps until escape for every point of a picture, in double precision.
__global__ void mandelbrot(unsigned short *steps, double left, double top, double pitch, int limit, int width,
                           int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  double cr = left + pitch * x;
  double ci = top + pitch * y;
  double zr = 0.0;
  double zi = 0.0;
  int step = 0;
  while (step < limit && zr * zr + zi * zi <= 4.0) {
    double real = zr * zr - zi * zi + cr;
    zi = 2.0 * zr * zi + ci;
    zr = real;
    ++step;
  }
  steps[y * width + x] = (unsigned short)step;
}
