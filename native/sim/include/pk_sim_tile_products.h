// pk_sim_tile_products.h: matrix products of tiles. Each sum runs over k in ascending order, in float32 for the small
// floats: its bits do not depend on the tile's other extents.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

namespace sim {
// Four numbers of k at a time, so that a row of sums is read and written once for them.
template <size_t M, size_t N, size_t K, class C>
PK_SIM_TILE_LOOP void multiply_matrices(C *__restrict sums, const C *__restrict a, const C *__restrict b) {
  for (size_t i = 0; i < M; ++i) {
    C *__restrict const row = sums + i * N;
    if constexpr (K % 4 == 0) {
      for (size_t k = 0; k < K; k += 4) {
        const C w = a[i * K + k], x = a[i * K + k + 1], y = a[i * K + k + 2], z = a[i * K + k + 3];
        const C *const line = b + k * N;
        for (size_t j = 0; j < N; ++j) {
          C sum = row[j] + w * line[j];
          sum = sum + x * line[N + j];
          sum = sum + y * line[2 * N + j];
          row[j] = sum + z * line[3 * N + j];
        }
      }
    } else {
      for (size_t k = 0; k < K; ++k) {
        const C w = a[i * K + k];
        for (size_t j = 0; j < N; ++j) row[j] = row[j] + w * b[k * N + j];
      }
    }
  }
}

template <class C, class T>
elements<C> numbers_as(const T &from) {
  if constexpr (same<C, element<T>>)
    return from.pk_sim_elements();
  else {
    elements<C> result(size_of<shape_of<T>>);
    copy_converted<size_of<shape_of<T>>>(result.at(), from.pk_sim_at());
    return result;
  }
}
template <class A, class Sum>
constexpr bool multiplies() {
  if constexpr (is_integer<A>)
    return sizeof(A) == 1 && same<Sum, int>;
  else if constexpr (same<A, double>)
    return same<Sum, double>;
  else
    return same<Sum, float> || (same<Sum, __half> && floating<A>::exponent <= 5);
}
template <class S>
constexpr size_t extent_from_end(size_t i) {
  return S::static_extent(S::rank() - 1 - i);
}
}  // namespace sim

template <numeric_tile A, numeric_tile B, numeric_tile Sum>
Sum mma(const A &a, const B &b, const Sum &sum) noexcept {
  using namespace sim;
  using X = shape_of<A>;
  using Y = shape_of<B>;
  using Z = shape_of<Sum>;
  using E = element<Sum>;
  constexpr size_t rank = Z::rank();
  static_assert((rank == 2 || rank == 3) && X::rank() == rank && Y::rank() == rank,
                "ct::mma takes tiles of 2 or 3 dimensions");
  constexpr size_t M = extent_from_end<X>(1), K = extent_from_end<X>(0), N = extent_from_end<Y>(0);
  static_assert(extent_from_end<Y>(1) == K && extent_from_end<Z>(1) == M && extent_from_end<Z>(0) == N,
                "ct::mma: (m, k) times (k, n) gives (m, n)");
  static_assert((same<element<A>, element<B>> || (is_integer<element<A>> && is_integer<element<B>>)) &&
                    multiplies<element<A>, E>() && multiplies<element<B>, E>(),
                "ct::mma does not multiply these element types with sums of that type");
  constexpr size_t batches = rank == 3 ? Z::static_extent(0) : 1;
  constexpr size_t a_step = rank == 3 && X::static_extent(0) == 1 ? 0 : M * K;
  constexpr size_t b_step = rank == 3 && Y::static_extent(0) == 1 ? 0 : K * N;
  static_assert(rank == 2 || ((X::static_extent(0) == 1 || X::static_extent(0) == batches) &&
                              (Y::static_extent(0) == 1 || Y::static_extent(0) == batches)),
                "ct::mma: the first extents are alike, or 1");
  using C = computed<E>;
  const elements<C> left = numbers_as<C>(a), right = numbers_as<C>(b);
  elements<C> result(batches * M * N);
  copy_converted<batches * M * N>(result.at(), sum.pk_sim_at());
  for (size_t i = 0; i < batches; ++i)
    multiply_matrices<M, N, K>(result.at() + i * M * N, left.at() + i * a_step, right.at() + i * b_step);
  return Sum(tile<C, Z>(result));
}

// The product alone, summed in the type that goes with the elements: float32, half for half and fp8, int32 for int8.
template <numeric_tile A, numeric_tile B>
auto matmul(const A &a, const B &b) noexcept {
  using namespace sim;
  using E = element<A>;
  using Sum =
      choose<is_integer<E>, int, choose<same<E, double>, double, choose<(floating<E>::exponent <= 5), __half, float>>>;
  constexpr size_t rank = shape_of<A>::rank(), m = extent_from_end<shape_of<A>>(1), n = extent_from_end<shape_of<B>>(0);
  if constexpr (rank == 2)
    return mma(a, b, zeros<tile<Sum, shape<m, n>>>());
  else {
    constexpr size_t x = shape_of<A>::static_extent(0), y = shape_of<B>::static_extent(0);
    return mma(a, b, zeros<tile<Sum, shape<(x > y ? x : y), m, n>>>());
  }
}

}  // namespace cuda::tiles
