// pk_sim_tile_moves.h: tiles of other shapes and types with the elements of a tile.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

namespace sim {
// to, of shape S, takes from `from` at steps[i] for a step along its dimension i.
template <class S, class E>
PK_SIM_TILE_LOOP void gathered(E *__restrict to, const E *__restrict from, const size_t *steps) {
  constexpr steps_of<S> of;
  constexpr size_t rank = of.rank, width = of.extent[rank - 1];
  const size_t along = steps[rank - 1];
  for (size_t at = 0; at < size_of<S>; at += width) {
    size_t source = 0;
    for (size_t i = 0; i + 1 < rank; ++i) source += at / of.step[i] % of.extent[i] * steps[i];
    for (size_t j = 0; j < width; ++j) to[at + j] = from[source + j * along];
  }
}
// The transpose of Count matrices of Rows x Columns elements of Width numbers each: in blocks that fit a cache.
template <size_t Rows, size_t Columns, size_t Width, class E>
PK_SIM_TILE_LOOP void swapped(E *__restrict to, const E *__restrict from) {
  constexpr size_t kBlock = 16;
  for (size_t row = 0; row < Rows; row += kBlock)
    for (size_t column = 0; column < Columns; ++column)
      for (size_t i = row; i < row + kBlock && i < Rows; ++i)
        for (size_t j = 0; j < Width; ++j)
          to[(column * Rows + i) * Width + j] = from[(i * Columns + column) * Width + j];
}

template <class S, class Map, class I = indices_to<Map::rank()>>
struct permuted;
template <class S, class Map, size_t... I>
struct permuted<S, Map, indices<I...>> {
  using type = shape<S::static_extent(Map::mapping(I))...>;
};
template <class S, class I = indices_to<S::rank()>>
struct transposed {
  using type = S;
};
template <class S, size_t... I>
requires(S::rank() >= 2) struct transposed<S, indices<I...>> {
  using type = shape<S::static_extent(I == 0 ? 1 : I == 1 ? 0 : I)...>;
};
template <class A, class B, size_t Along, class I = indices_to<A::rank()>>
struct joined;
template <class A, class B, size_t Along, size_t... I>
struct joined<A, B, Along, indices<I...>> {
  static constexpr bool possible = ((I == Along || A::static_extent(I) == B::static_extent(I)) && ...);
  using type = shape<(A::static_extent(I) + (I == Along ? B::static_extent(I) : 0))...>;
};
// Copies a part of shape Part between a tile of shape Whole, from `offset` on, and one of its own; Into: to the whole.
template <class Whole, class Part, bool Into, class E>
PK_SIM_TILE_LOOP void copy_part(E *__restrict to, const E *__restrict from, size_t offset) {
  constexpr steps_of<Whole> whole;
  constexpr steps_of<Part> part;
  constexpr size_t rank = part.rank, width = part.extent[rank - 1];
  for (size_t at = 0; at < size_of<Part>; at += width) {
    size_t there = offset;
    for (size_t i = 0; i + 1 < rank; ++i) there += at / part.step[i] % part.extent[i] * whole.step[i];
    for (size_t j = 0; j < width; ++j) (Into ? to[there + j] : to[at + j]) = Into ? from[at + j] : from[there + j];
  }
}
template <class Whole, class Part, class... Place>
size_t part_offset(Place... places) {
  static_assert(sizeof...(Place) == Part::rank() && Part::rank() == Whole::rank(), "one place for each dimension");
  constexpr steps_of<Whole> whole;
  const size_t each[] = {(size_t)places..., 0};
  size_t offset = 0;
  for (size_t i = 0; i < Part::rank(); ++i) {
    const size_t parts = Whole::static_extent(i) / Part::static_extent(i);
    if (each[i] >= parts)
      pk_sim_fail(PK_SIM_FAIL_TRAP, "ct::extract or ct::insert of a part outside the tile", "", "cuda_tile.h", 0);
    offset += each[i] * Part::static_extent(i) * whole.step[i];
  }
  return offset;
}
}  // namespace sim

template <class Shape, tile_like T>
auto reshape(const T &from, Shape = {}) noexcept {
  static_assert(tile_size_v<T> == sim::size_of<Shape>, "ct::reshape keeps the number of elements");
  return tile<sim::element<T>, sim::plain<Shape>>(tile<sim::element<T>, sim::shape_of<T>>(from).pk_sim_elements());
}
template <class Shape, tile_like T>
auto broadcast(const T &from, Shape = {}) noexcept {
  using Both = sim::common_shape<sim::shape_of<T>, Shape>;
  static_assert(Both::possible && sim::same<typename Both::type, sim::plain<Shape>>,
                "ct::broadcast: the tile does not fit into that shape");
  using E = sim::element<T>;
  const sim::operand<Shape, T> one(from);
  if constexpr (one.step)
    return tile<E, Shape>(one.kept);
  else
    return full<tile<E, Shape>>((E)from);
}
template <class Map, tile_like T>
auto permute(const T &from, Map = {}) noexcept {
  using S = typename sim::permuted<sim::shape_of<T>, Map>::type;
  constexpr sim::steps_of<sim::shape_of<T>> of;
  size_t steps[S::rank() + 1] = {};
  for (size_t i = 0; i < S::rank(); ++i) steps[i] = of.step[Map::mapping(i)];
  sim::elements<sim::element<T>> result(sim::size_of<S>);
  sim::gathered<S>(result.at(), from.pk_sim_at(), steps);
  return tile<sim::element<T>, S>(result);
}
// Of the first two dimensions.
template <tile_like T>
auto transpose(const T &from) noexcept {
  using S = sim::shape_of<T>;
  if constexpr (S::rank() < 2)
    return from;
  else {
    constexpr size_t rows = S::static_extent(0), columns = S::static_extent(1);
    sim::elements<sim::element<T>> result(sim::size_of<S>);
    sim::swapped<rows, columns, sim::size_of<S> / rows / columns>(result.at(), from.pk_sim_at());
    return tile<sim::element<T>, typename sim::transposed<S>::type>(result);
  }
}
template <auto Along, tile_like A, tile_like B>
auto cat(const A &a, const B &b, integral_constant<Along> = {}) noexcept {
  using S = sim::joined<sim::shape_of<A>, sim::shape_of<B>, (size_t)Along>;
  static_assert(sim::same<sim::element<A>, sim::element<B>> && S::possible, "ct::cat: the tiles do not fit together");
  using Whole = typename S::type;
  constexpr sim::steps_of<Whole> whole;
  sim::elements<sim::element<A>> result(sim::size_of<Whole>);
  sim::copy_part<Whole, sim::shape_of<A>, true>(result.at(), a.pk_sim_at(), 0);
  sim::copy_part<Whole, sim::shape_of<B>, true>(result.at(), b.pk_sim_at(),
                                                sim::shape_of<A>::static_extent(Along) * whole.step[Along]);
  return tile<sim::element<A>, Whole>(result);
}
// The part of shape Shape at that place, counted in parts.
template <class Shape, tile_like T, class... Place>
auto extract(const T &from, Shape, Place... places) noexcept {
  sim::elements<sim::element<T>> result(sim::size_of<Shape>);
  sim::copy_part<sim::shape_of<T>, Shape, false>(result.at(), from.pk_sim_at(),
                                                 sim::part_offset<sim::shape_of<T>, Shape>(places...));
  return tile<sim::element<T>, Shape>(result);
}
template <tile_like Part, tile_like T, class... Place>
[[nodiscard]] T insert(const T &into, const Part &part, Place... places) noexcept {
  using E = sim::element<T>;
  sim::elements<E> result(tile_size_v<T>);
  sim::copy_converted<tile_size_v<T>>(result.at(), into.pk_sim_at());
  sim::copy_part<sim::shape_of<T>, sim::shape_of<Part>, true>(
      result.at(), tile<E, sim::shape_of<Part>>(part).pk_sim_at(),
      sim::part_offset<sim::shape_of<T>, sim::shape_of<Part>>(places...));
  return T(result);
}

namespace sim {
template <class To>
struct saturating {
  template <class From>
  PK_SIM_TILE_CALL To operator()(From value) const {
    const auto number = (double)convert<computed<From>>(value);
    constexpr double high =
        integer<To>::bits >= 63 ? 0x1p63 * (integer<To>::bits - 62) : (double)((1ull << integer<To>::bits) - 1);
    constexpr double low = integer<To>::is_signed ? -high - (integer<To>::bits < 63) : 0;
    if (number != number) return 0;
    return number <= low    ? (To)(integer<To>::is_signed ? (To)1 << (8 * sizeof(To) - 1) : 0)
           : number >= high ? (To)(~0ull >> (64 - integer<To>::bits))
                            : (To)number;
  }
};
}  // namespace sim

template <scalar Element, tile_like T>
auto element_cast(const T &from) noexcept {
  if constexpr (sim::same<sim::element<T>, Element>)
    return from;
  else
    return sim::map<Element>(sim::converting<Element>{}, from);
}
template <scalar Element, basic_floating_point_tile T, saturation_mode Mode>
requires sim::is_integer<Element>
auto element_cast(const T &from, saturation_mode_constant<Mode>) noexcept {
  return sim::map<Element>(sim::saturating<Element>{}, from);
}
template <scalar Element, tile_like T>
auto element_bitcast(const T &from) noexcept {
  static_assert(sizeof(Element) == sizeof(sim::element<T>), "ct::element_bitcast keeps the size of the elements");
  using S = sim::shape_of<T>;
  const auto kept = tile<sim::element<T>, S>(from);
  const tile<Element, S> result(kept.pk_sim_elements().template as<Element>());
  if constexpr (scalar<T>)
    return (Element)result;
  else
    return result;
}

}  // namespace cuda::tiles
