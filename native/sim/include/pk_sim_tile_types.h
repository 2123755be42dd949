// pk_sim_tile_types.h: the types of a tile's elements, what they are computed in, and which convert to which by
// themselves.
#pragma once
#pragma GCC system_header

struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
struct __nv_tf32;

namespace cuda::tiles {

template <class Element, class Shape>
class tile;

namespace sim {
template <class T>
struct integer {  // bits: of the value, 0 where T is none
  static constexpr int bits = 0;
  static constexpr bool is_signed = false;
};
#define PK_SIM_TILE_INTEGER(T)                                                      \
  template <>                                                                       \
  struct integer<T> {                                                               \
    static constexpr bool is_signed = (T)-1 < (T)1;                                 \
    static constexpr int bits = same<T, bool> ? 1 : 8 * (int)sizeof(T) - is_signed; \
  };
PK_SIM_TILE_INTEGER(bool)
PK_SIM_TILE_INTEGER(char)
PK_SIM_TILE_INTEGER(signed char)
PK_SIM_TILE_INTEGER(unsigned char)
PK_SIM_TILE_INTEGER(short)
PK_SIM_TILE_INTEGER(unsigned short)
PK_SIM_TILE_INTEGER(int)
PK_SIM_TILE_INTEGER(unsigned)
PK_SIM_TILE_INTEGER(long)
PK_SIM_TILE_INTEGER(unsigned long)
PK_SIM_TILE_INTEGER(long long)
PK_SIM_TILE_INTEGER(unsigned long long)
#undef PK_SIM_TILE_INTEGER

// Bits of a float's exponent and mantissa; 0 where T is none. computes: it has arithmetic of its own.
template <class T>
struct floating {
  static constexpr int exponent = 0, mantissa = 0;
  static constexpr bool computes = false;
};
#define PK_SIM_TILE_FLOAT(T, e, m, c)                \
  template <>                                        \
  struct floating<T> {                               \
    static constexpr int exponent = e, mantissa = m; \
    static constexpr bool computes = c;              \
  };
PK_SIM_TILE_FLOAT(double, 11, 52, true)
PK_SIM_TILE_FLOAT(float, 8, 23, true)
PK_SIM_TILE_FLOAT(__half, 5, 10, true)
PK_SIM_TILE_FLOAT(__nv_bfloat16, 8, 7, true)
PK_SIM_TILE_FLOAT(__nv_tf32, 8, 10, false)
PK_SIM_TILE_FLOAT(__nv_fp8_e4m3, 4, 3, false)
PK_SIM_TILE_FLOAT(__nv_fp8_e5m2, 5, 2, false)
#undef PK_SIM_TILE_FLOAT

template <class T>
inline constexpr bool is_integer = integer<T>::bits != 0;
template <class T>
inline constexpr bool is_float = floating<T>::exponent != 0;
template <class T>
inline constexpr bool is_small_float = is_float<T> && !same<T, float> && !same<T, double>;
template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<T *> = true;
template <class T>
inline constexpr bool is_number = is_integer<T> || is_float<T>;
template <class T>
inline constexpr bool is_scalar = is_number<T> || is_pointer<T>;
template <class T>
inline constexpr bool is_computed = is_integer<T> || floating<T>::computes;
template <class T>
struct pointee_of {
  using type = void;
};
template <class T>
struct pointee_of<T *> {
  using type = T;
};
template <class T>
using pointee = typename pointee_of<T>::type;

template <class T>
inline constexpr bool is_tile = false;
template <class E, class S>
inline constexpr bool is_tile<tile<E, S>> = true;
template <class T>
struct parts {  // of what stands for a tile: a scalar is one without dimensions
  using element = T;
  using shape = tiles::shape<>;
};
template <class E, class S>
struct parts<tile<E, S>> {
  using element = E;
  using shape = S;
};
template <auto V>
struct parts<integral_constant<V>> {
  using element = decltype(V);
  using shape = tiles::shape<>;
};
template <class T>
using element = typename parts<plain<T>>::element;
template <class T>
using shape_of = typename parts<plain<T>>::shape;

// What elements are computed in: half precision in float, rounded after each operation.
template <class T>
using computed = choose<is_small_float<T>, float, T>;

template <class To, class From>
PK_SIM_TILE_EACH To convert(From value) {
  if constexpr (same<To, From>)
    return value;
  else if constexpr (is_small_float<From> && !same<To, float>)
    return convert<To>((float)value);
  else if constexpr (is_small_float<To> && !same<From, float>)
    return (To)(float)value;
  else
    return (To)value;
}

// A value of From may change when it becomes a To, so that a cast must say so.
template <class From, class To>
constexpr bool narrows() {
  if constexpr (same<From, To>)
    return false;
  else if constexpr (is_integer<From> && is_integer<To>)
    return integer<From>::is_signed ? !integer<To>::is_signed || integer<From>::bits > integer<To>::bits
                                    : integer<From>::bits > integer<To>::bits;
  else if constexpr (is_float<From> && is_float<To>)
    return floating<From>::exponent > floating<To>::exponent || floating<From>::mantissa > floating<To>::mantissa;
  else if constexpr (is_pointer<From> && is_pointer<To>)
    return !requires(From p) { To{p}; };
  else
    return true;
}

// The type that two elements are computed in together; void where there is none.
template <class A, class B>
struct together {
  template <class T>
  struct is {
    using type = T;
  };
  static constexpr auto find() {
    if constexpr (same<A, B>)
      return is<A>{};
    else if constexpr (is_float<A> && is_float<B>) {
      if constexpr (!narrows<A, B>())
        return is<B>{};
      else if constexpr (!narrows<B, A>())
        return is<A>{};
      else
        return is<void>{};
    } else if constexpr (is_float<A>)
      return is<A>{};
    else if constexpr (is_float<B>)
      return is<B>{};
    else if constexpr (!narrows<A, B>())
      return is<B>{};
    else if constexpr (!narrows<B, A>())
      return is<A>{};
    else
      return is<void>{};
  }
  using type = typename decltype(find())::type;
};
}  // namespace sim

template <class T>
concept scalar = sim::is_scalar<sim::plain<T>>;
template <class T>
concept tile_like = scalar<T> || sim::is_tile<sim::plain<T>>;
template <class T>
concept pointer_tile = tile_like<T> && sim::is_pointer<sim::element<T>>;
template <class T>
concept numeric_tile = tile_like<T> && sim::is_number<sim::element<T>>;
template <class T>
concept arithmetic_tile = tile_like<T> && sim::is_computed<sim::element<T>>;
template <class T>
concept integral_tile = tile_like<T> && sim::is_integer<sim::element<T>>;
template <class T>
concept floating_point_tile = tile_like<T> && sim::is_float<sim::element<T>>;
template <class T>
concept basic_floating_point_tile = floating_point_tile<T> && arithmetic_tile<T>;
template <tile_like T>
using tile_element_t = sim::element<T>;
template <tile_like T>
using tile_shape_t = sim::shape_of<T>;
template <tile_like T>
inline constexpr size_t tile_rank_v = tile_shape_t<T>::rank();
template <tile_like T>
inline constexpr size_t tile_size_v = sim::size_of<tile_shape_t<T>>;

namespace sim {
template <class T, class E>
struct with {
  using type = tile<E, shape_of<T>>;
};
template <scalar T, class E>
struct with<T, E> {
  using type = E;
};
}  // namespace sim
template <tile_like T, scalar E>
using tile_with_element_t = typename sim::with<sim::plain<T>, sim::plain<E>>::type;

}  // namespace cuda::tiles
