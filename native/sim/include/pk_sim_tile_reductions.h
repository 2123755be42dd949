// pk_sim_tile_reductions.h: sums and their like along a dimension of a tile, and running ones.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

namespace sim {
template <class S, size_t Along, class I = indices_to<S::rank()>>
struct reduced;
template <class S, size_t Along, size_t... I>
struct reduced<S, Along, indices<I...>> {
  static_assert(Along < S::rank(), "a reduction along a dimension that the tile does not have");
  static constexpr size_t length = S::static_extent(Along);
  static constexpr size_t inner = (size_t(I > Along ? S::static_extent(I) : 1) * ... * 1);
  using type = shape<(I == Along ? 1 : S::static_extent(I))...>;
};

// Halves fold onto each other until one is left: the order of additions depends on the length alone. work: as many
// numbers as the tile has, overwritten.
template <size_t Outer, size_t Length, size_t Inner, class C, class R, class F>
PK_SIM_TILE_LOOP void fold(R *to, C *work, F f) {
  for (size_t outer = 0; outer < Outer; ++outer) {
    C *const mine = work + outer * Length * Inner;
    for (size_t half = Length / 2; half; half /= 2) {
      C *__restrict low = mine;
      const C *__restrict high = mine + half * Inner;
      for (size_t i = 0; i < half * Inner; ++i) low[i] = f(low[i], high[i]);
    }
    for (size_t i = 0; i < Inner; ++i) to[outer * Inner + i] = convert<R>(mine[i]);
  }
}
template <size_t Along, class R, class C, class F, class T>
auto reduce(F f, const T &a) {
  using S = shape_of<T>;
  using Kind = reduced<S, Along>;
  elements<C> work(size_of<S>);
  copy_converted<size_of<S>>(work.at(), a.pk_sim_at());
  elements<R> result(size_of<typename Kind::type>);
  fold<size_of<S> / Kind::length / Kind::inner, Kind::length, Kind::inner>(result.at(), work.at(), f);
  return tile<R, typename Kind::type>(result);
}
template <size_t Along, class F, class T>
auto reduce_in_kind(F f, const T &a) {
  return reduce<Along, element<T>, computed<element<T>>>(f, a);
}

// Where the first of the largest stands (or smallest, as f says what beats what).
template <size_t Outer, size_t Length, size_t Inner, class E, class F>
PK_SIM_TILE_LOOP void find_best(unsigned *to, const E *from, F beats) {
  using C = computed<E>;
  for (size_t outer = 0; outer < Outer; ++outer)
    for (size_t i = 0; i < Inner; ++i) {
      const E *const mine = from + outer * Length * Inner + i;
      unsigned best = 0;
      for (size_t k = 1; k < Length; ++k)
        if (beats(convert<C>(mine[k * Inner]), convert<C>(mine[best * Inner]))) best = (unsigned)k;
      to[outer * Inner + i] = best;
    }
}
template <size_t Along, class F, class T>
auto best(F beats, const T &a) {
  using S = shape_of<T>;
  using Kind = reduced<S, Along>;
  elements<unsigned> result(size_of<typename Kind::type>);
  find_best<size_of<S> / Kind::length / Kind::inner, Kind::length, Kind::inner>(result.at(), a.pk_sim_at(), beats);
  return tile<unsigned, typename Kind::type>(result);
}

template <bool Backward, size_t Outer, size_t Length, size_t Inner, class E, class F>
PK_SIM_TILE_LOOP void run_along(E *to, const E *from, F f) {
  using C = computed<E>;
  for (size_t outer = 0; outer < Outer; ++outer)
    for (size_t i = 0; i < Inner; ++i) {
      const size_t base = outer * Length * Inner + i;
      C so_far = convert<C>(from[base + (Backward ? Length - 1 : 0) * Inner]);
      for (size_t k = 0; k < Length; ++k) {
        const size_t at = base + (Backward ? Length - 1 - k : k) * Inner;
        if (k) so_far = f(so_far, convert<C>(from[at]));
        to[at] = convert<E>(so_far);
      }
    }
}
template <size_t Along, bool Backward, class F, class T>
T running(F f, const T &a) {
  using S = shape_of<T>;
  using Kind = reduced<S, Along>;
  elements<element<T>> result(size_of<S>);
  run_along<Backward, size_of<S> / Kind::length / Kind::inner, Kind::length, Kind::inner>(result.at(), a.pk_sim_at(),
                                                                                          f);
  return T(result);
}
}  // namespace sim

#define PK_SIM_TILE_REDUCTION(concept_, name, ...) \
  template <auto Along, concept_ T>                \
  requires sim::is_tile<T>                         \
  auto name(const T &a, integral_constant<Along> = {}) noexcept { return __VA_ARGS__; }
PK_SIM_TILE_REDUCTION(arithmetic_tile, sum, sim::reduce_in_kind<(size_t)Along>(sim::add{}, a))
PK_SIM_TILE_REDUCTION(arithmetic_tile, prod, sim::reduce_in_kind<(size_t)Along>(sim::multiply{}, a))
PK_SIM_TILE_REDUCTION(arithmetic_tile, reduce_max, sim::reduce_in_kind<(size_t)Along>(sim::larger{}, a))
PK_SIM_TILE_REDUCTION(arithmetic_tile, reduce_min, sim::reduce_in_kind<(size_t)Along>(sim::smaller{}, a))
PK_SIM_TILE_REDUCTION(integral_tile, reduce_bitand, sim::reduce_in_kind<(size_t)Along>(sim::bit_and{}, a))
PK_SIM_TILE_REDUCTION(integral_tile, reduce_bitor, sim::reduce_in_kind<(size_t)Along>(sim::bit_or{}, a))
PK_SIM_TILE_REDUCTION(integral_tile, reduce_bitxor, sim::reduce_in_kind<(size_t)Along>(sim::bit_xor{}, a))
PK_SIM_TILE_REDUCTION(tile_like, all_of, sim::reduce<(size_t)Along, bool, bool>(sim::both{}, a))
PK_SIM_TILE_REDUCTION(tile_like, any_of, sim::reduce<(size_t)Along, bool, bool>(sim::either{}, a))
PK_SIM_TILE_REDUCTION(arithmetic_tile, max_element, sim::best<(size_t)Along>(sim::greater{}, a))
PK_SIM_TILE_REDUCTION(arithmetic_tile, min_element, sim::best<(size_t)Along>(sim::less{}, a))
#undef PK_SIM_TILE_REDUCTION
template <auto Along, arithmetic_tile T, nan_propagation_mode Mode>
auto reduce_max(const T &a, integral_constant<Along> along, nan_propagation_mode_constant<Mode>) noexcept {
  if constexpr (Mode == nan_propagation_mode::suppress_nan)
    return reduce_max(a, along);
  else
    return sim::reduce_in_kind<(size_t)Along>(sim::larger_or_nan{}, a);
}
template <auto Along, arithmetic_tile T, nan_propagation_mode Mode>
auto reduce_min(const T &a, integral_constant<Along> along, nan_propagation_mode_constant<Mode>) noexcept {
  if constexpr (Mode == nan_propagation_mode::suppress_nan)
    return reduce_min(a, along);
  else
    return sim::reduce_in_kind<(size_t)Along>(sim::smaller_or_nan{}, a);
}
template <auto Along, scan_direction Direction = scan_direction::forward, arithmetic_tile T>
T partial_sum(const T &a, integral_constant<Along> = {}, scan_direction_constant<Direction> = {}) noexcept {
  return sim::running<(size_t)Along, Direction == scan_direction::backward>(sim::add{}, a);
}
template <auto Along, scan_direction Direction = scan_direction::forward, arithmetic_tile T>
T partial_prod(const T &a, integral_constant<Along> = {}, scan_direction_constant<Direction> = {}) noexcept {
  return sim::running<(size_t)Along, Direction == scan_direction::backward>(sim::multiply{}, a);
}

}  // namespace cuda::tiles
