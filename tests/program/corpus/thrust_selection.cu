// Thrust: what a test selects, what is left, what is unique, and running sums; the host's own algorithms agree.
// output: even 5, odd 6, unique 5, last sum 54
// output: gathered 9 4 0
// output: the host agrees: yes
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/unique.h>

#include <cstdio>

struct IsEven {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

int main() {
  thrust::host_vector<int> host(11);
  for (int i = 0; i < 11; ++i) host[i] = i < 10 ? i : 9;
  const thrust::device_vector<int> numbers = host;
  thrust::device_vector<int> even(11), odd = numbers, sums(11);
  even.erase(thrust::copy_if(numbers.begin(), numbers.end(), even.begin(), IsEven()), even.end());
  odd.erase(thrust::remove_if(odd.begin(), odd.end(), IsEven()), odd.end());
  thrust::inclusive_scan(numbers.begin(), numbers.end(), sums.begin());
  thrust::device_vector<int> unique = odd;
  const int kinds = thrust::unique(unique.begin(), unique.end()) - unique.begin();
  std::printf("even %d, odd %d, unique %d, last sum %d\n", (int)even.size(), (int)odd.size(), kinds, (int)sums.back());
  thrust::device_vector<int> places = {9, 4, 0}, taken(3);
  thrust::gather(places.begin(), places.end(), numbers.begin(), taken.begin());
  std::printf("gathered %d %d %d\n", (int)taken[0], (int)taken[1], (int)taken[2]);
  thrust::host_vector<int> host_sums(11);
  thrust::inclusive_scan(host.begin(), host.end(), host_sums.begin());
  const bool same = thrust::count_if(host.begin(), host.end(), IsEven()) == (long)even.size() && host_sums == sums;
  std::printf("the host agrees: %s\n", same ? "yes" : "no");
  return 0;
}
