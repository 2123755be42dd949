// nbody.cu: gravitational acceleration of all bodies on each, bodies passing through shared memory in tiles.
#define TILE 32
__global__ void nbody(const float4 *bodies, float4 *accelerations, float softening, int n) {
  __shared__ float4 tile[TILE];
  int i = blockIdx.x * TILE + threadIdx.x;
  float4 own = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int first = 0; first < n; first += TILE) {
    int other = first + threadIdx.x;
    tile[threadIdx.x] = other < n ? bodies[other] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
      float4 body = tile[k];
      float dx = body.x - own.x;
      float dy = body.y - own.y;
      float dz = body.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      float strength = body.w * inverse * inverse * inverse;
      sum.x += strength * dx;
      sum.y += strength * dy;
      sum.z += strength * dz;
    }
    __syncthreads();
  }
  if (i < n) accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}
