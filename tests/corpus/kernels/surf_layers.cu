// surf_layers.cu: each layer of a stack of pairs moved on by one, each pair turned around.
extern "C" __global__ void surf_layers(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int layers) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, layer = blockIdx.z;
  if (x >= width) return;
  const float2 pair = surf2DLayeredread<float2>(from, 8 * x, y, layer);
  surf2DLayeredwrite(make_float2(pair.y, pair.x), to, 8 * x, y, (layer + 1) % layers);
}
