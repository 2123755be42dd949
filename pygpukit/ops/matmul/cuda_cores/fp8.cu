// fp8.cu: products of 8-bit floats, or of one with wider floats, with scales; summed in float32.
#include "gemm.cuh"
#include "storage.cuh"

namespace pk {

constexpr int kScaleBlock = 128;  // of k, that share a scale

enum ElementType { kE4m3, kE5m2, kHalf, kBfloat16, kFloat };

struct ScaledCall {
  long long m, n, k;
  long long start[3];  // of a, b, c: elements from the pointer to the first element
  long long row[3];    // elements from one row to the next
  long long column[3];
  long long scale_line[2];   // of a and b: from the scale of one group of lines to the next
  long long scale_depth[2];  // and of one block of k to the next
  int lines[2];              // lines that share a scale
  int type[2];
  int has_scale[2];
  float factor;  // of the whole product
  int unused;
};

// A matrix of any of the types, as fetch() reads it: the sums depend on the numbers alone.
struct AnyFloats {
  const unsigned char *data;
  int type;
  __device__ __forceinline__ float operator[](long long i) const {
    switch (type) {
      case kE4m3:
        return widen(reinterpret_cast<const e4m3_t *>(data)[i]);
      case kE5m2:
        return widen(reinterpret_cast<const e5m2_t *>(data)[i]);
      case kHalf:
        return widen(reinterpret_cast<const half_t *>(data)[i]);
      case kBfloat16:
        return widen(reinterpret_cast<const bfloat16_t *>(data)[i]);
      default:
        return reinterpret_cast<const float *>(data)[i];
    }
  }
};

__device__ __forceinline__ void fetch_any(const AnyFloats &from, long long start, long long line0, long long lines,
                                          long long line_stride, long long depth0, long long depth,
                                          long long depth_stride, float (&tile)[kDepth][kTile + kTilePad]) {
  const int thread = threadIdx.y * kThreads + threadIdx.x;
  const bool along_depth = depth_stride == 1;
  for (int i = thread; i < kTile * kDepth; i += kThreads * kThreads) {
    const int l = along_depth ? i / kDepth : i % kTile;
    const int d = along_depth ? i % kDepth : i / kTile;
    const bool inside = line0 + l < lines && depth0 + d < depth;
    tile[d][l] = inside ? from[start + (line0 + l) * line_stride + (depth0 + d) * depth_stride] : 0.0f;
  }
}

// c = factor * the sum over blocks of k of scale_a scale_b (a @ b of the block).
template <class Out>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm_scaled(const unsigned char *a, const unsigned char *b, const float *scale_a, const float *scale_b, Out *c,
                const __grid_constant__ ScaledCall p) {
  __shared__ GemmTiles<float> tiles;
  const long long tiles_n = (p.n + kTile - 1) / kTile;
  const long long row0 = blockIdx.x / tiles_n * kTile;
  const long long column0 = blockIdx.x % tiles_n * kTile;
  TileSums<float> total = {};
#pragma unroll 1
  for (long long block = 0; block * kScaleBlock < p.k; ++block) {
    const long long first = block * kScaleBlock, end = first + kScaleBlock < p.k ? first + kScaleBlock : p.k;
    TileSums<float> sum = {};
#pragma unroll 1
    for (long long depth0 = first; depth0 < end; depth0 += kDepth) {
      fetch_any({a, p.type[0]}, p.start[0], row0, p.m, p.row[0], depth0, end, p.column[0], tiles.left);
      fetch_any({b, p.type[1]}, p.start[1], column0, p.n, p.column[1], depth0, end, p.row[1], tiles.right);
      __syncthreads();
      add_step(tiles, sum);
      __syncthreads();
    }
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const long long row = row0 + tile_row(i), column = column0 + tile_column(j);
        if (row >= p.m || column >= p.n) continue;
        float scale = 1.0f;
        if (p.has_scale[0]) scale = scale_a[row / p.lines[0] * p.scale_line[0] + block * p.scale_depth[0]];
        if (p.has_scale[1]) scale *= scale_b[column / p.lines[1] * p.scale_line[1] + block * p.scale_depth[1]];
        total[i][j] = fmaf(scale, sum[i][j], total[i][j]);
      }
    }
  }
  for (int i = 0; i < kPerThread; ++i) {
    for (int j = 0; j < kPerThread; ++j) {
      const long long row = row0 + tile_row(i), column = column0 + tile_column(j);
      if (row >= p.m || column >= p.n) continue;
      c[p.start[2] + row * p.row[2] + column * p.column[2]] = convert<Out>::from(p.factor * total[i][j]);
    }
  }
}

}  // namespace pk
