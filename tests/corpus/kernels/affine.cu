// affine.cu: points moved by a matrix and an offset that are passed in a struct by value.
struct Affine {
  float rows[2][2];
  float offset[2];
};

__device__ float2 apply(const Affine &map, float2 p) {
  return make_float2(map.rows[0][0] * p.x + map.rows[0][1] * p.y + map.offset[0],
                     map.rows[1][0] * p.x + map.rows[1][1] * p.y + map.offset[1]);
}

__global__ void affine(const float2 *points, float2 *out, Affine map, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = apply(map, points[i]);
}
