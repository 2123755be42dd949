// fft_stockham.cu: one self-sorting radix-2 stage of Fourier transforms in double precision, between two buffers.
__global__ void fft_stockham(const double2 *in, double2 *out, int half, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int signal = blockIdx.y;
  if (i >= count / 2) return;
  int k = i % half;
  double2 a = in[signal * count + i];
  double2 b = in[signal * count + i + count / 2];
  double sine;
  double cosine;
  sincospi(-(double)k / half, &sine, &cosine);
  double2 turned = make_double2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
  int to = (i - k) * 2 + k;
  out[signal * count + to] = make_double2(a.x + turned.x, a.y + turned.y);
  out[signal * count + to + half] = make_double2(a.x - turned.x, a.y - turned.y);
}
