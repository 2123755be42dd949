// pk_sim_tile_value.h: a tile, and how a function is applied to all of its elements. Nothing changes a tile's elements
// once they are there, so that tiles with the same elements share them.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

namespace sim {
// Elements on the heap: stacks of the simulator's threads are small. Counted by the tiles that share them.
template <class E>
class elements {
  static constexpr size_t kHead = 64;
  char *block_ = nullptr;

 public:
  elements() = default;
  PK_SIM_TILE_APART explicit elements(size_t count) {
    block_ = (char *)pk_sim_device->scratch(nullptr, kHead + (count * sizeof(E) + kHead - 1) / kHead * kHead);
    *(size_t *)block_ = 1;
  }
  PK_SIM_TILE_APART elements(const elements &other) : block_(other.block_) {
    if (block_) ++*(size_t *)block_;
  }
  PK_SIM_TILE_APART elements(elements &&other) : block_(other.block_) { other.block_ = nullptr; }
  PK_SIM_TILE_APART elements &operator=(elements other) {
    char *const before = block_;
    block_ = other.block_;
    other.block_ = before;
    return *this;
  }
  PK_SIM_TILE_APART E first() const { return *at(); }
  PK_SIM_TILE_APART ~elements() {
    if (block_ && --*(size_t *)block_ == 0) pk_sim_device->scratch(block_, 0);
  }
  E *at() const { return (E *)(block_ + kHead); }
  bool none() const { return !block_; }
  template <class Other>
  elements<Other> as() const {  // of the same number of bytes
    return *(const elements<Other> *)this;
  }
};

template <size_t Count, class To, class From>
PK_SIM_TILE_LOOP void copy_converted(To *__restrict to, const From *from) {
  for (size_t i = 0; i < Count; ++i) to[i] = convert<To>(from[i]);
}
// What is read where nothing was written: NaN, or a number that is easily seen.
template <class E>
PK_SIM_TILE_LOOP void poison(E *to, size_t count) {
  __builtin_memset((void *)to, is_float<E> ? 0xff : 0x5a, count * sizeof(E));
}
}  // namespace sim

template <class Element, class Shape>
class tile final {
  static_assert(sim::is_scalar<Element>, "the elements of a tile are numbers or pointers");
  mutable sim::elements<Element> elements_;

 public:
  using element_type = Element;
  using shape_type = Shape;
  using rank_type = size_t;
  using index_type = unsigned;
  static constexpr size_t pk_sim_size = sim::size_of<Shape>;
  static_assert(
      pk_sim_size != 0 && (pk_sim_size & (pk_sim_size - 1)) == 0 && pk_sim_size <= 16777216,
      "every extent of a tile is a power of two that the compiler knows, and a tile has at most 2^24 elements");

  tile() = default;
  explicit tile(sim::elements<Element> elements) : elements_(static_cast<sim::elements<Element> &&>(elements)) {}

  template <tile_like Other>
  requires(sim::same<sim::shape_of<Other>, Shape> &&
           !sim::same<Other, tile>) explicit(sim::narrows<sim::element<Other>, Element>())
      tile(const Other &other) noexcept;
  template <class From, size_t N>
  requires(Shape::rank() == 1) explicit(sim::narrows<From, Element>()) tile(const From (&values)[N]) noexcept
      : elements_(pk_sim_size) {
    static_assert(N == pk_sim_size, "as many values as the tile has elements");
    sim::copy_converted<N>(elements_.at(), values);
  }
  template <class From, size_t N, size_t M>
  requires(Shape::rank() == 2) explicit(sim::narrows<From, Element>()) tile(const From (&values)[N][M]) noexcept
      : elements_(pk_sim_size) {
    static_assert(N == Shape::static_extent(0) && M == Shape::static_extent(1), "values in the shape of the tile");
    sim::copy_converted<N * M>(elements_.at(), values[0]);
  }

  template <scalar Other>
  requires(pk_sim_size == 1) explicit operator Other() const noexcept {
    return sim::convert<Other>(pk_sim_elements().first());
  }

  const sim::elements<Element> &pk_sim_elements() const {
    if (elements_.none()) {
      elements_ = sim::elements<Element>(pk_sim_size);
      sim::poison(elements_.at(), pk_sim_size);
    }
    return elements_;
  }
  const Element *pk_sim_at() const { return pk_sim_elements().at(); }
};
template <scalar E>
tile(E) -> tile<sim::plain<E>, shape<>>;
template <class E, size_t N>
tile(const E (&)[N]) -> tile<sim::plain<E>, shape<N>>;
template <class E, size_t N, size_t M>
tile(const E (&)[N][M]) -> tile<sim::plain<E>, shape<N, M>>;

namespace sim {
// Copies `from` of shape From to the larger shape To: extents of 1 are repeated, missing ones come first.
template <class From, class To, class E>
PK_SIM_TILE_LOOP void repeat(E *__restrict to, const E *__restrict from) {
  constexpr steps_of<From> less;
  constexpr steps_of<To> more;
  constexpr size_t rank = more.rank, missing = rank - less.rank;
  constexpr size_t width = more.extent[rank - 1];
  constexpr bool repeats = less.rank == 0 || less.extent[less.rank - 1] != width;
  for (size_t at = 0; at < size_of<To>; at += width) {
    size_t source = 0;
    for (size_t i = missing; i + 1 < rank; ++i)
      if (less.extent[i - missing] != 1) source += at / more.step[i] % more.extent[i] * less.step[i - missing];
    if constexpr (repeats) {
      const E value = from[source];
      for (size_t j = 0; j < width; ++j) to[at + j] = value;
    } else {
      for (size_t j = 0; j < width; ++j) to[at + j] = from[source + j];
    }
  }
}

// What takes part in an operation whose result has shape S: elements, and whether there is one for all.
template <class S, class T>
struct operand {
  using E = element<T>;
  static constexpr size_t step = 0;
  E value;
  explicit operand(const T &scalar) : value(scalar) {}
  const E *at() const { return &value; }
};
template <class S, class E, class From>
struct operand<S, tile<E, From>> {
  static constexpr size_t step = size_of<From> != 1;
  elements<E> kept;
  explicit operand(const tile<E, From> &from) : kept(from.pk_sim_elements()) {
    if constexpr (step && size_of<From> != size_of<S>) {
      elements<E> more(size_of<S>);
      repeat<From, S>(more.at(), kept.at());
      kept = more;
    }
  }
  const E *at() const { return kept.at(); }
};

template <size_t Count, size_t A, class R, class F, class X>
PK_SIM_TILE_LOOP void each(R *__restrict to, F f, const X *a) {
  for (size_t i = 0; i < Count; ++i) to[i] = f(a[i * A]);
}
template <size_t Count, size_t A, size_t B, class R, class F, class X, class Y>
PK_SIM_TILE_LOOP void each(R *__restrict to, F f, const X *a, const Y *b) {
  for (size_t i = 0; i < Count; ++i) to[i] = f(a[i * A], b[i * B]);
}
template <size_t Count, size_t A, size_t B, size_t C, class R, class F, class X, class Y, class Z>
PK_SIM_TILE_LOOP void each(R *__restrict to, F f, const X *a, const Y *b, const Z *c) {
  for (size_t i = 0; i < Count; ++i) to[i] = f(a[i * A], b[i * B], c[i * C]);
}
template <class R, class S, class F, class... T>
elements<R> applied(F f, const operand<S, T> &...operands) {
  elements<R> result(size_of<S>);
  each<size_of<S>, operand<S, T>::step...>(result.at(), f, operands.at()...);
  return result;
}

// f of the elements of tiles and scalars, broadcast to a common shape, in elements of type R; a scalar where all are.
template <class R, class F, class... T>
auto map(F f, const T &...operands) {
  using S = typename all_together<shape_of<T>...>::type;
  if constexpr ((is_tile<T> || ...))
    return tile<R, S>(applied<R, S>(f, operand<S, T>(operands)...));
  else
    return (R)f(operands...);
}
template <class To>
struct converting {
  template <class From>
  PK_SIM_TILE_CALL To operator()(From value) const {
    return convert<To>(value);
  }
};
}  // namespace sim

template <class Element, class Shape>
template <tile_like Other>
requires(sim::same<sim::shape_of<Other>, Shape> &&
         !sim::same<Other, tile<Element, Shape>>) tile<Element, Shape>::tile(const Other &other)
noexcept : elements_(sim::applied<Element, Shape>(sim::converting<Element>{}, sim::operand<Shape, Other>(other))) {}

template <tile_like T>
T full(sim::element<T> value) noexcept {
  if constexpr (scalar<T>)
    return value;
  else
    return T(sim::applied<sim::element<T>, sim::shape_of<T>>([](sim::element<T> each)
                                                                 PK_SIM_TILE_LAMBDA { return each; },
                                                             sim::operand<sim::shape_of<T>, sim::element<T>>(value)));
}
template <numeric_tile T>
T zeros() noexcept {
  return full<T>(sim::convert<sim::element<T>>(0.0f));
}
template <numeric_tile T>
T ones() noexcept {
  return full<T>(sim::convert<sim::element<T>>(1.0f));
}
namespace sim {
template <size_t Count, class E>
PK_SIM_TILE_LOOP void count_up(E *to) {
  for (size_t i = 0; i < Count; ++i) to[i] = (E)i;
}
}  // namespace sim
template <integral_tile T>
T iota() noexcept {
  sim::elements<sim::element<T>> result(tile_size_v<T>);
  sim::count_up<tile_size_v<T>>(result.at());
  return T(result);
}

}  // namespace cuda::tiles
