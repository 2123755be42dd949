// Thrust: how often each number occurs, by sorting and by runs of equal keys; the most frequent one.
// output: 0:2 2:1 3:4 7:1 9:2
// output: most frequent 3, 4 times
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <iostream>
#include <vector>

int main() {
  const std::vector<int> numbers = {3, 0, 9, 3, 7, 3, 2, 9, 0, 3};
  thrust::device_vector<int> sorted(numbers.begin(), numbers.end()), keys(10), counts(10);
  thrust::sort(sorted.begin(), sorted.end());
  const auto ends = thrust::reduce_by_key(sorted.begin(), sorted.end(), thrust::constant_iterator<int>(1), keys.begin(),
                                          counts.begin());
  keys.resize(ends.first - keys.begin());
  counts.resize(ends.second - counts.begin());
  for (size_t i = 0; i < keys.size(); ++i) std::cout << (i == 0 ? "" : " ") << keys[i] << ":" << counts[i];
  const auto most = thrust::max_element(counts.begin(), counts.end());
  std::cout << "\nmost frequent " << keys[most - counts.begin()] << ", " << *most << " times" << std::endl;
  return 0;
}
