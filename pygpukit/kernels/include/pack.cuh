// pack.cuh: 16 bytes of neighbouring elements, loaded and stored as one.
#pragma once

namespace pk {

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

// Elements of each operand that one thread takes: 16 bytes of the widest type.
template <class S, class D>
__host__ __device__ constexpr int pack_size() {
  constexpr int larger = sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D);
  return 16 / larger;
}

template <int N, class T>
__device__ __forceinline__ bool aligned(const T *pointer) {
  return reinterpret_cast<unsigned long long>(pointer) % (sizeof(T) * N) == 0;
}
template <int N, class T>
__device__ __forceinline__ Pack<T, N> load(const T *pointer) {
  return *reinterpret_cast<const Pack<T, N> *>(pointer);
}
template <int N, class T>
__device__ __forceinline__ void store(T *pointer, const Pack<T, N> &pack) {
  *reinterpret_cast<Pack<T, N> *>(pointer) = pack;
}

}  // namespace pk
