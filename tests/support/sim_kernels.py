"""Sample kernels and what NumPy says they compute: check_all() runs them on whatever simulated device is open."""

from __future__ import annotations

import numpy as np
from sim_table import Module, Table

from bench.kernels import ADD, MATMUL

BLUR = """
__global__ void blur(const float *__restrict__ in, float *__restrict__ out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int at = y * width + x;
  out[at] = in[at - 1] + in[at + 1] + in[at - width] + in[at + width];
}
"""

VOLUME = """
__global__ void volume(int *out) {
  dim3 extent(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
  uint3 at = make_uint3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                        blockIdx.z * blockDim.z + threadIdx.z);
  out[(at.z * extent.y + at.y) * extent.x + at.x] = at.x + 100 * at.y + 10000 * at.z;
}
"""

TOTAL = """
__inline__ __device__ float warp_sum(float value) {
  for (int delta = warpSize / 2; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
  return value;
}
extern "C" __global__ void total(const float *x, float *sum, int n) {
  __shared__ float parts[32];
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += x[i];
  value = warp_sum(value);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_sum(lane < blockDim.x / 32 ? parts[lane] : 0.0f);
    if (lane == 0) atomicAdd(sum, value);
  }
}
"""

HISTOGRAM = """
__global__ void histogram(const unsigned char *data, unsigned *bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
"""

SOFTMAX = """
namespace rows {
template <typename T>
__global__ void __launch_bounds__(256) softmax(const T *x, T *y, int n) {
  extern __shared__ __align__(16) float scratch[];
  const T *row = x + (size_t)blockIdx.x * n;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, (float)row[i]);
  scratch[threadIdx.x] = top;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  top = scratch[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf((float)row[i] - top);
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[(size_t)blockIdx.x * n + i] = (T)(__expf((float)row[i] - top) / scratch[0]);
}
}
"""

REVERSE = """
__global__ void reverse(const int *in, int *out, int n) {
  __shared__ int values[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // some threads leave before the barrier
  values[threadIdx.x] = in[i];
  __syncthreads();
  int last = min(n - (int)(blockIdx.x * blockDim.x), (int)blockDim.x) - 1;
  out[i] = values[last - threadIdx.x];
}
"""

LAST_BLOCK = """
__device__ unsigned ticket = 0;
__global__ void last_block(const float *x, float *parts, float *sum, int n) {
  __shared__ bool last;
  __shared__ float values[128];
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += x[i];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = 64; half; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = values[0];
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0;
    for (int block = 0; block < gridDim.x; ++block) all += parts[block];
    *sum = all;
  }
}
"""


def check_all(table: Table) -> None:
    """Every sample against NumPy; odd sizes, so that the last blocks are partly idle."""
    rng = np.random.default_rng(7)
    n = 100_003
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    left, right, out = table.array(a), table.array(b), table.array(np.zeros_like(a))
    Module(table, ADD).run("add", -(-n // 256), 256, left, right, out, n)
    assert np.array_equal(out.read(), a + b)

    image = rng.random((67, 131), dtype=np.float32)
    blurred = table.array(np.zeros_like(image))
    Module(table, BLUR).run("blur", (9, 5), (16, 16), table.array(image), blurred, 131, 67)
    expected = np.zeros_like(image)
    expected[1:-1, 1:-1] = image[1:-1, :-2] + image[1:-1, 2:] + image[:-2, 1:-1] + image[2:, 1:-1]
    assert np.allclose(blurred.read(), expected, rtol=1e-6)

    volume = table.array(np.zeros((3 * 2, 2 * 5, 4 * 7), np.int32))
    Module(table, VOLUME).run("volume", (4, 2, 3), (7, 5, 2), volume)
    z, y, x = np.indices((6, 10, 28))
    assert np.array_equal(volume.read(), x + 100 * y + 10000 * z)

    p, q = rng.random((96, 96), dtype=np.float32), rng.random((96, 96), dtype=np.float32)
    product = table.array(np.zeros_like(p))
    Module(table, MATMUL).run("matmul", (6, 6), (16, 16), table.array(p), table.array(q), product, 96)
    assert np.allclose(product.read(), p @ q, rtol=1e-5)

    total = table.array(np.zeros(1, np.float32))
    Module(table, TOTAL).run("total", 13, 256, left, total, n)
    assert np.isclose(total.read()[0], a.sum(dtype=np.float64), rtol=1e-5)

    data = rng.integers(0, 256, n, dtype=np.uint8)
    bins = table.array(np.zeros(256, np.uint32))
    Module(table, HISTOGRAM).run("histogram", 11, 96, table.array(data), bins, n)
    assert np.array_equal(bins.read(), np.bincount(data, minlength=256))

    rows = rng.standard_normal((7, 301)).astype(np.float32)
    soft = table.array(rows)
    module = Module(table, SOFTMAX, ["rows::softmax<float>"])
    module.run("rows::softmax<float>", 7, 256, table.array(rows), soft, 301, shared=1024)
    powers = np.exp(rows - rows.max(1, keepdims=True))
    assert np.allclose(soft.read(), powers / powers.sum(1, keepdims=True), rtol=1e-5)

    numbers = np.arange(1000, dtype=np.int32)
    reversed_blocks = table.array(np.zeros_like(numbers))
    Module(table, REVERSE).run("reverse", 4, 256, table.array(numbers), reversed_blocks, 1000)
    blocks = [numbers[at : at + 256][::-1] for at in range(0, 1000, 256)]
    assert np.array_equal(reversed_blocks.read(), np.concatenate(blocks))

    ones, parts = table.array(np.ones(n, np.float32)), table.array(np.zeros(64, np.float32))
    module = Module(table, LAST_BLOCK)
    for _ in range(3):
        total.write(np.zeros(1))
        module.run("last_block", 64, 128, ones, parts, total, n)
        assert total.read()[0] == n
