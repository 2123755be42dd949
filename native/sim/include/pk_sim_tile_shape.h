// pk_sim_tile_shape.h: numbers that the compiler knows, extents and strides with and without them, and which shapes go
// together.
#pragma once
#pragma GCC system_header

// A loop over the elements of tiles: no business of the checker, which is told of the arrays that tiles come from.
#define PK_SIM_TILE_LOOP PK_SIM_NOINLINE
#define PK_SIM_TILE_EACH PK_SIM_UNCHECKED PK_SIM_INLINE
#define PK_SIM_TILE_CALL PK_SIM_UNCHECKED inline __attribute__((__always_inline__))
#define PK_SIM_TILE_LAMBDA PK_SIM_UNCHECKED __attribute__((__always_inline__))
#ifndef PK_SIM_CHECK
#define PK_SIM_TILE_APART
#else
#define PK_SIM_TILE_APART __attribute__((noinline)) PK_SIM_UNCHECKED
#endif

namespace cuda::tiles {

template <auto Value>
struct integral_constant {
  using type = integral_constant;
  using value_type = decltype(Value);
  static constexpr value_type value = Value;
  constexpr operator value_type() const noexcept { return Value; }
  constexpr value_type operator()() const noexcept { return Value; }
};
#define PK_SIM_TILE_CONSTANT(op)                                                                           \
  template <auto A, auto B>                                                                                \
  constexpr integral_constant<(A op B)> operator op(integral_constant<A>, integral_constant<B>) noexcept { \
    return {};                                                                                             \
  }
PK_SIM_TILE_CONSTANT(+)
PK_SIM_TILE_CONSTANT(-)
PK_SIM_TILE_CONSTANT(*)
PK_SIM_TILE_CONSTANT(/)
PK_SIM_TILE_CONSTANT(%)
PK_SIM_TILE_CONSTANT(&)
PK_SIM_TILE_CONSTANT(|)
PK_SIM_TILE_CONSTANT(^)
PK_SIM_TILE_CONSTANT(<<)
PK_SIM_TILE_CONSTANT(>>)
#undef PK_SIM_TILE_CONSTANT
template <auto A>
constexpr integral_constant<-A> operator-(integral_constant<A>) noexcept {
  return {};
}
template <auto A>
constexpr integral_constant<+A> operator+(integral_constant<A>) noexcept {
  return {};
}
template <auto A>
constexpr integral_constant<~A> operator~(integral_constant<A>) noexcept {
  return {};
}

namespace sim {
template <char... Digits>
constexpr unsigned long long parsed() {
  constexpr char text[] = {Digits..., 0};
  unsigned long long value = 0;
  unsigned base = 10, at = 0;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
    base = 16, at = 2;
  else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B'))
    base = 2, at = 2;
  else if (text[0] == '0')
    base = 8;
  for (; text[at]; ++at) {
    const char c = text[at];
    if (c != '\'') value = value * base + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}
template <unsigned long long Value>
constexpr auto narrowest() {
  if constexpr (Value <= 0x7fffffffull)
    return (int)Value;
  else
    return (long)Value;
}

template <class T, class U>
inline constexpr bool same = false;
template <class T>
inline constexpr bool same<T, T> = true;
template <class T>
struct plain_of {
  using type = T;
};
template <class T>
struct plain_of<const T> {
  using type = T;
};
template <class T>
struct plain_of<volatile T> {
  using type = T;
};
template <class T>
struct plain_of<const volatile T> {
  using type = T;
};
template <class T>
using plain = typename plain_of<T>::type;  // without const and volatile
template <bool Which, class T, class F>
struct chosen {
  using type = T;
};
template <class T, class F>
struct chosen<false, T, F> {
  using type = F;
};
template <bool Which, class T, class F>
using choose = typename chosen<Which, T, F>::type;
template <size_t... I>
struct indices {};
template <class>
struct as_sizes;
template <int... I>
struct as_sizes<pk_sim_indices<I...>> {
  using type = indices<(size_t)I...>;
};
template <size_t N>
using indices_to = typename as_sizes<pk_sim_make_indices<(int)N>>::type;
}  // namespace sim

namespace literals {
template <char... Digits>
constexpr auto operator""_ic() noexcept {
  return integral_constant<sim::narrowest<sim::parsed<Digits...>()>()>{};
}
}  // namespace literals

inline constexpr size_t dynamic_extent = ~(size_t)0;
inline constexpr size_t dynamic_stride = ~(size_t)0;
inline constexpr ptrdiff_t dynamic_offset = (ptrdiff_t)((size_t)1 << 63);

namespace sim {
template <class T>
inline constexpr size_t known = dynamic_extent;
template <auto Value>
inline constexpr size_t known<integral_constant<Value>> = (size_t)Value;
template <class T>
inline constexpr ptrdiff_t known_offset = dynamic_offset;
template <auto Value>
inline constexpr ptrdiff_t known_offset<integral_constant<Value>> = (ptrdiff_t)Value;

// Numbers of which some are known to the compiler; Unknown marks the others.
template <class Index, class Known, Known Unknown, Known... Values>
struct numbers {
  using rank_type = size_t;
  static constexpr size_t count = sizeof...(Values);
  static constexpr size_t open = (size_t(Values == Unknown) + ... + 0);
  static constexpr Known fixed[count + 1] = {Values..., 0};
  Index value[count + 1] = {(Index)(Values == Unknown ? 0 : Values)..., 0};

  constexpr numbers() = default;
  template <class... Given>
  requires(sizeof...(Given) == count && sizeof...(Given) != 0) constexpr explicit numbers(Given... given) noexcept
      : value{(Index)given..., 0} {}
  template <class... Given>
  requires(sizeof...(Given) == open && open != count && open != 0) constexpr explicit numbers(Given... given) noexcept {
    const Index each[] = {(Index)given...};
    for (size_t i = 0, next = 0; i < count; ++i)
      if (fixed[i] == Unknown) value[i] = each[next++];
  }
};
}  // namespace sim

template <class Index, size_t... Extents>
struct extents : sim::numbers<Index, size_t, dynamic_extent, Extents...> {
  using sim::numbers<Index, size_t, dynamic_extent, Extents...>::numbers;
  using index_type = Index;
  using rank_type = size_t;
  static constexpr size_t rank() noexcept { return sizeof...(Extents); }
  static constexpr size_t rank_dynamic() noexcept { return extents::open; }
  static constexpr size_t static_extent(size_t i) noexcept { return extents::fixed[i]; }
  constexpr Index extent(size_t i) const noexcept { return this->value[i]; }
};
template <class... T>
extents(T...) -> extents<unsigned, sim::known<T>...>;

template <class Stride, size_t... Strides>
struct strides : sim::numbers<Stride, size_t, dynamic_stride, Strides...> {
  using sim::numbers<Stride, size_t, dynamic_stride, Strides...>::numbers;
  using stride_type = Stride;
  using rank_type = size_t;
  static constexpr size_t rank() noexcept { return sizeof...(Strides); }
  static constexpr size_t rank_dynamic() noexcept { return strides::open; }
  static constexpr size_t static_stride(size_t i) noexcept { return strides::fixed[i]; }
  constexpr Stride stride(size_t i) const noexcept { return this->value[i]; }
};
template <class... T>
strides(T...) -> strides<unsigned, sim::known<T>...>;

template <class Offset, ptrdiff_t... Offsets>
struct offsets : sim::numbers<Offset, ptrdiff_t, dynamic_offset, Offsets...> {
  using sim::numbers<Offset, ptrdiff_t, dynamic_offset, Offsets...>::numbers;
  using offset_type = Offset;
  using rank_type = size_t;
  static constexpr size_t rank() noexcept { return sizeof...(Offsets); }
  static constexpr size_t rank_dynamic() noexcept { return offsets::open; }
  static constexpr ptrdiff_t static_offset(size_t i) noexcept { return offsets::fixed[i]; }
  constexpr Offset offset(size_t i) const noexcept { return this->value[i]; }
};
template <class... T>
offsets(T...) -> offsets<int, sim::known_offset<T>...>;

template <size_t... Extents>
using shape = extents<unsigned, Extents...>;

template <size_t... Places>
struct dimension_map {
  constexpr dimension_map() noexcept = default;
  template <class... T>
  requires(sizeof...(T) > 0) constexpr explicit dimension_map(T...) noexcept {}
  static constexpr size_t rank() noexcept { return sizeof...(Places); }
  static constexpr size_t mapping(size_t i) noexcept {
    constexpr size_t places[] = {Places..., 0};
    return places[i];
  }
};
template <auto... Places>
dimension_map(integral_constant<Places>...) -> dimension_map<(size_t)Places...>;

namespace sim {
template <class S>
inline constexpr size_t size_of = 1;
template <class I, size_t... E>
inline constexpr size_t size_of<extents<I, E...>> = (E * ... * 1);

template <class S>
struct steps_of;  // elements between neighbours along each dimension of a tile of shape S
template <class I, size_t... E>
struct steps_of<extents<I, E...>> {
  static constexpr size_t rank = sizeof...(E);
  size_t extent[rank + 1] = {E..., 1}, step[rank + 1] = {};
  constexpr steps_of() {
    size_t below = 1;
    for (size_t i = rank; i-- > 0;) {
      step[i] = below;
      below *= extent[i];
    }
  }
};

// The extent of dimension i of two shapes together, counted from the last one; 0 where they do not go together.
template <class A, class B>
constexpr size_t common_extent(size_t i, size_t rank) {
  const size_t a = i + A::rank() < rank ? 1 : A::static_extent(i + A::rank() - rank);
  const size_t b = i + B::rank() < rank ? 1 : B::static_extent(i + B::rank() - rank);
  return a == b || b == 1 ? a : a == 1 ? b : 0;
}
template <class A, class B, class I = indices_to<(A::rank() > B::rank() ? A::rank() : B::rank())>>
struct common_shape;
template <class A, class B, size_t... I>
struct common_shape<A, B, indices<I...>> {
  static constexpr bool possible = ((common_extent<A, B>(I, sizeof...(I)) != 0) && ...);
  using type = shape<common_extent<A, B>(I, sizeof...(I))...>;
};
template <class...>
struct all_together;
template <class A>
struct all_together<A> {
  using type = A;
};
template <class A, class B, class... Rest>
struct all_together<A, B, Rest...> {
  static_assert(common_shape<A, B>::possible, "the shapes of these tiles cannot be broadcast to a common one");
  using type = typename all_together<typename common_shape<A, B>::type, Rest...>::type;
};
}  // namespace sim

template <class S>
inline constexpr size_t shape_size_v = sim::size_of<S>;

}  // namespace cuda::tiles
