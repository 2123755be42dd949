// Thrust: two arrays as points, their box by one reduction, and their order along x by a sort by key.
// output: order 2 0 3 1
// output: box -1 -4 .. 6 5
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

#include <cstdio>

struct Box {
  float left, bottom, right, top;
};
struct Around {
  __host__ __device__ Box operator()(const thrust::tuple<float, float> &point) const {
    const float x = thrust::get<0>(point), y = thrust::get<1>(point);
    return {x, y, x, y};
  }
};
struct Joined {
  __host__ __device__ Box operator()(const Box &a, const Box &b) const {
    return {fminf(a.left, b.left), fminf(a.bottom, b.bottom), fmaxf(a.right, b.right), fmaxf(a.top, b.top)};
  }
};

int main() {
  const float xs[] = {1, 6, -1, 2}, ys[] = {5, -4, 0, 2};
  thrust::device_vector<float> x(xs, xs + 4), y(ys, ys + 4);
  const auto first = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin()));
  const Box box = thrust::transform_reduce(first, first + 4, Around(), Box{1e9f, 1e9f, -1e9f, -1e9f}, Joined());
  thrust::device_vector<int> order(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(4));
  thrust::sort_by_key(x.begin(), x.end(), order.begin());
  std::printf("order %d %d %d %d\n", (int)order[0], (int)order[1], (int)order[2], (int)order[3]);
  std::printf("box %g %g .. %g %g\n", box.left, box.bottom, box.right, box.top);
  return 0;
}
