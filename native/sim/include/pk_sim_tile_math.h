// pk_sim_tile_math.h: arithmetic, comparisons and functions of tiles, element by element, with the shapes broadcast.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

// ---- how an operation is to be computed
#define PK_SIM_TILE_MODE(name, ...)                              \
  enum class name : unsigned char { __VA_ARGS__ };               \
  template <name Value>                                          \
  struct name##_constant {                                       \
    using type = name##_constant;                                \
    using value_type = name;                                     \
    static constexpr name value = Value;                         \
    constexpr operator name() const noexcept { return Value; }   \
    constexpr name operator()() const noexcept { return Value; } \
  };
PK_SIM_TILE_MODE(rounding_mode, round_ties_to_even, round_toward_zero, round_toward_negative, round_toward_positive,
                 round_approximate, round_full, round_ties_to_away)
PK_SIM_TILE_MODE(subnormals_rounding_mode, preserve_subnormals, round_subnormals_to_zero)
PK_SIM_TILE_MODE(nan_propagation_mode, suppress_nan, propagate_nan)
PK_SIM_TILE_MODE(saturation_mode, saturate_finite)
PK_SIM_TILE_MODE(memory_order, relaxed, acquire, release, acq_rel)
PK_SIM_TILE_MODE(thread_scope, system, device, block)
PK_SIM_TILE_MODE(view_padding, zero, negative_zero, positive_inf, negative_inf, nan)
PK_SIM_TILE_MODE(scan_direction, forward, backward)
#undef PK_SIM_TILE_MODE
using round_ties_to_even_t = rounding_mode_constant<rounding_mode::round_ties_to_even>;
using round_toward_zero_t = rounding_mode_constant<rounding_mode::round_toward_zero>;
using round_toward_negative_t = rounding_mode_constant<rounding_mode::round_toward_negative>;
using round_toward_positive_t = rounding_mode_constant<rounding_mode::round_toward_positive>;
using round_approximate_t = rounding_mode_constant<rounding_mode::round_approximate>;
using round_full_t = rounding_mode_constant<rounding_mode::round_full>;
using round_ties_to_away_t = rounding_mode_constant<rounding_mode::round_ties_to_away>;
using default_rounding_mode_t = round_ties_to_even_t;
using preserve_subnormals_t = subnormals_rounding_mode_constant<subnormals_rounding_mode::preserve_subnormals>;
using round_subnormals_to_zero_t =
    subnormals_rounding_mode_constant<subnormals_rounding_mode::round_subnormals_to_zero>;
using default_subnormals_rounding_mode_t = preserve_subnormals_t;
using suppress_nan_t = nan_propagation_mode_constant<nan_propagation_mode::suppress_nan>;
using propagate_nan_t = nan_propagation_mode_constant<nan_propagation_mode::propagate_nan>;
using default_nan_propagation_mode_t = suppress_nan_t;
using saturate_finite_t = saturation_mode_constant<saturation_mode::saturate_finite>;
using memory_order_relaxed_t = memory_order_constant<memory_order::relaxed>;
using memory_order_acquire_t = memory_order_constant<memory_order::acquire>;
using memory_order_release_t = memory_order_constant<memory_order::release>;
using memory_order_acq_rel_t = memory_order_constant<memory_order::acq_rel>;
using thread_scope_system_t = thread_scope_constant<thread_scope::system>;
using thread_scope_device_t = thread_scope_constant<thread_scope::device>;
using thread_scope_block_t = thread_scope_constant<thread_scope::block>;
using default_thread_scope_t = thread_scope_device_t;
using view_padding_zero_t = view_padding_constant<view_padding::zero>;
using view_padding_negative_zero_t = view_padding_constant<view_padding::negative_zero>;
using view_padding_positive_inf_t = view_padding_constant<view_padding::positive_inf>;
using view_padding_negative_inf_t = view_padding_constant<view_padding::negative_inf>;
using view_padding_nan_t = view_padding_constant<view_padding::nan>;
using default_view_padding_t = view_padding_zero_t;
using scan_forward_t = scan_direction_constant<scan_direction::forward>;
using scan_backward_t = scan_direction_constant<scan_direction::backward>;

namespace sim {
// The element type of an operation: a scalar takes that of the tile beside it.
template <class A, class B>
using meeting = choose<scalar<A> && !scalar<B>, element<B>,
                       choose<!scalar<A> && scalar<B>, element<A>, typename together<element<A>, element<B>>::type>>;
template <class From, class To>
constexpr bool loses() {
  return narrows<From, To>() && !(is_integer<From> && is_float<To>);
}
template <class A, class B>
constexpr bool meet() {
  if constexpr (same<meeting<A, B>, void>)
    return false;
  else
    return !loses<element<A>, meeting<A, B>>() && !loses<element<B>, meeting<A, B>>();
}
#define PK_SIM_TILE_MEET(A, B) \
  static_assert(               \
      sim::meet<A, B>(),       \
      "these element types do not meet without losing something: cast one with ct::element_cast, or a scalar")

// A function of numbers as one of elements, which are computed as C and kept as R.
template <class C, class R, class F>
struct in {
  F f;
  template <class... T>
  PK_SIM_TILE_CALL R operator()(T... each) const {
    return convert<R>(f(convert<C>(each)...));
  }
};
template <class F, class A>
auto unary(F f, const A &a) {
  using E = element<A>;
  return map<E>(in<computed<E>, E, F>{f}, a);
}
template <class F, class A, class B>
auto binary(F f, const A &a, const B &b) {
  PK_SIM_TILE_MEET(A, B);
  using E = meeting<A, B>;
  return map<E>(in<computed<E>, E, F>{f}, a, b);
}
template <class F, class A, class B>
auto comparison(F f, const A &a, const B &b) {
  using E = typename together<element<A>, element<B>>::type;
  static_assert(!same<E, void>, "these element types cannot be compared: cast one with ct::element_cast");
  return map<bool>(in<computed<E>, bool, F>{f}, a, b);
}

#define PK_SIM_TILE_FUNCTOR(name, parameters, ...)      \
  struct name {                                         \
    template <class T>                                  \
    PK_SIM_TILE_CALL auto operator() parameters const { \
      return __VA_ARGS__;                               \
    }                                                   \
  };
PK_SIM_TILE_FUNCTOR(add, (T a, T b), (T)(a + b))
PK_SIM_TILE_FUNCTOR(subtract, (T a, T b), (T)(a - b))
PK_SIM_TILE_FUNCTOR(multiply, (T a, T b), (T)(a *b))
PK_SIM_TILE_FUNCTOR(bit_and, (T a, T b), (T)(a &b))
PK_SIM_TILE_FUNCTOR(bit_or, (T a, T b), (T)(a | b))
PK_SIM_TILE_FUNCTOR(bit_xor, (T a, T b), (T)(a ^ b))
PK_SIM_TILE_FUNCTOR(bit_not, (T a), (T)(same<T, bool> ? !a : ~a))
PK_SIM_TILE_FUNCTOR(negate, (T a), (T)(-a))
PK_SIM_TILE_FUNCTOR(less, (T a, T b), a < b)
PK_SIM_TILE_FUNCTOR(less_equal, (T a, T b), a <= b)
PK_SIM_TILE_FUNCTOR(greater, (T a, T b), a > b)
PK_SIM_TILE_FUNCTOR(greater_equal, (T a, T b), a >= b)
PK_SIM_TILE_FUNCTOR(equal, (T a, T b), a == b)
PK_SIM_TILE_FUNCTOR(unequal, (T a, T b), a != b)
PK_SIM_TILE_FUNCTOR(both, (T a, T b), a &&b)
PK_SIM_TILE_FUNCTOR(either, (T a, T b), a || b)
PK_SIM_TILE_FUNCTOR(opposite, (T a), !a)
PK_SIM_TILE_FUNCTOR(larger, (T a, T b), a > b || b != b ? a : b)  // of a NaN and a number, the number
PK_SIM_TILE_FUNCTOR(smaller, (T a, T b), a < b || b != b ? a : b)
PK_SIM_TILE_FUNCTOR(larger_or_nan, (T a, T b), a > b || a != a ? a : b)
PK_SIM_TILE_FUNCTOR(smaller_or_nan, (T a, T b), a < b || a != a ? a : b)
PK_SIM_TILE_FUNCTOR(not_a_number, (T a), a != a)
PK_SIM_TILE_FUNCTOR(infinite, (T a), a == (T)__builtin_inf() || a == -(T)__builtin_inf())

[[noreturn]] PK_SIM_NOINLINE void divided_by_zero() {
#ifdef PK_SIM_CHECK
  pk_sim_checker.divided_by_zero("", 0);
#endif
  pk_sim_fail(PK_SIM_FAIL_TRAP, "a tile of integers was divided by zero", "", "cuda_tile.h", 0);
}
// The quotient, rounded towards zero (Round 0), up (1) or down (-1), or what is left of it.
template <int Round, bool Rest>
struct divide {
  template <class T>
  PK_SIM_TILE_CALL T operator()(T a, T b) const {
    if constexpr (!is_integer<T>) {
      if constexpr (Rest)
        return same<T, float> ? (T)__builtin_fmodf(a, b) : (T)__builtin_fmod(a, b);
      else
        return a / b;
    } else {
      if (b == 0) divided_by_zero();
      if constexpr (integer<T>::is_signed)
        if (b == (T)-1) return Rest ? (T)0 : (T)(0 - a);
      if constexpr (Rest) return (T)(a % b);
      const T quotient = (T)(a / b);
      if constexpr (Round == 0) return quotient;
      const bool whole = (T)(quotient * b) == a, below = (a < 0) != (b < 0);
      return (T)(whole ? quotient : Round > 0 ? quotient + !below : quotient - below);
    }
  }
};
struct high_product {
  template <class T>
  PK_SIM_TILE_CALL T operator()(T a, T b) const {
    return (T)((choose<integer<T>::is_signed, __int128, unsigned __int128>)a * b >> 8 * sizeof(T));
  }
};
struct shift_left {
  template <class T, class N>
  PK_SIM_TILE_CALL T operator()(T a, N n) const {
    return (unsigned long long)n >= 8 * sizeof(T) ? (T)0 : (T)(a << n);
  }
};
struct shift_right {
  template <class T, class N>
  PK_SIM_TILE_CALL T operator()(T a, N n) const {
    return (T)(a >> ((unsigned long long)n >= 8 * sizeof(T) ? 8 * sizeof(T) - 1 : (unsigned)n));
  }
};
struct absolute {
  template <class T>
  PK_SIM_TILE_CALL T operator()(T a) const {
    if constexpr (same<T, float>)
      return __builtin_fabsf(a);
    else if constexpr (same<T, double>)
      return __builtin_fabs(a);
    else
      return (T)(a < 0 ? 0 - a : a);
  }
};
struct multiply_add {
  template <class T>
  PK_SIM_TILE_CALL T operator()(T a, T b, T c) const {
    if constexpr (same<T, float>)
      return __builtin_fmaf(a, b, c);
    else if constexpr (same<T, double>)
      return __builtin_fma(a, b, c);
    else
      return (T)(a * b + c);
  }
};
#define PK_SIM_TILE_LIBM(name)                                                          \
  struct name##_of {                                                                    \
    PK_SIM_TILE_CALL float operator()(float a) const { return __builtin_##name##f(a); } \
    PK_SIM_TILE_CALL double operator()(double a) const { return __builtin_##name(a); }  \
  };
PK_SIM_TILE_LIBM(exp)
PK_SIM_TILE_LIBM(exp2)
PK_SIM_TILE_LIBM(log)
PK_SIM_TILE_LIBM(log2)
PK_SIM_TILE_LIBM(sqrt)
PK_SIM_TILE_LIBM(sin)
PK_SIM_TILE_LIBM(cos)
PK_SIM_TILE_LIBM(tan)
PK_SIM_TILE_LIBM(sinh)
PK_SIM_TILE_LIBM(cosh)
PK_SIM_TILE_LIBM(tanh)
PK_SIM_TILE_LIBM(floor)
PK_SIM_TILE_LIBM(ceil)
struct rsqrt_of {
  PK_SIM_TILE_CALL float operator()(float a) const { return (float)(1.0 / __builtin_sqrt((double)a)); }
  PK_SIM_TILE_CALL double operator()(double a) const { return 1.0 / __builtin_sqrt(a); }
};
struct pow_of {
  PK_SIM_TILE_CALL float operator()(float a, float b) const { return __builtin_powf(a, b); }
  PK_SIM_TILE_CALL double operator()(double a, double b) const { return __builtin_pow(a, b); }
};
struct atan2_of {
  PK_SIM_TILE_CALL float operator()(float a, float b) const { return __builtin_atan2f(a, b); }
  PK_SIM_TILE_CALL double operator()(double a, double b) const { return __builtin_atan2(a, b); }
};

// f, as modes after the operands say. What a GPU approximates is rounded to nearest even here.
template <class M>
concept mode = requires(M m) {
  rounding_mode(m);
}
|| requires(M m) { subnormals_rounding_mode(m); };
template <class M>
constexpr bool is_directed(M m) {
  if constexpr (requires { rounding_mode(m); })
    return !same<M, round_ties_to_even_t> && !same<M, round_approximate_t> && !same<M, round_full_t>;
  else
    return false;
}
template <class F>
struct flushing {
  F f;
  template <class T>
  static PK_SIM_TILE_CALL T flushed(T a) {
    constexpr T least = same<T, float> ? (T)0x1p-126f : (T)0x1p-1022;
    return a < least && a > -least ? a * 0 : a;
  }
  template <class... T>
  PK_SIM_TILE_CALL auto operator()(T... each) const {
    return flushed(f(flushed(each)...));
  }
};
template <class F, class... M>
auto moded(F, M... modes) {
  static_assert(!(is_directed(M{}) || ...), "the simulated device rounds tiles to nearest even only");
  return choose<(same<M, round_subnormals_to_zero_t> || ...), flushing<F>, F>{};
}

template <class A, class B>
concept one_is_tile = tile_like<A> && tile_like<B> &&(is_tile<A> || is_tile<B>);
template <class A, class B>
concept numbers_beside = one_is_tile<A, B> && is_number<element<A>> && is_number<element<B>>;
template <class A, class B>
concept pointers_beside = one_is_tile<A, B> && is_pointer<element<A>> && is_pointer<element<B>>;
}  // namespace sim

// ---- operators
#define PK_SIM_TILE_OPERATOR(op, how, functor)                                                          \
  template <class A, class B>                                                                           \
  requires sim::numbers_beside<A, B>                                                                    \
  auto operator op(const A &a, const B &b) noexcept {                                                   \
    static_assert(arithmetic_tile<A> && arithmetic_tile<B>,                                             \
                  "these elements have no arithmetic: cast them to float with ct::element_cast first"); \
    return sim::how(sim::functor{}, a, b);                                                              \
  }
namespace sim {
using quotient = divide<0, false>;
using rest = divide<0, true>;
}  // namespace sim
PK_SIM_TILE_OPERATOR(+, binary, add)
PK_SIM_TILE_OPERATOR(-, binary, subtract)
PK_SIM_TILE_OPERATOR(*, binary, multiply)
PK_SIM_TILE_OPERATOR(/, binary, quotient)
PK_SIM_TILE_OPERATOR(<, comparison, less)
PK_SIM_TILE_OPERATOR(<=, comparison, less_equal)
PK_SIM_TILE_OPERATOR(>, comparison, greater)
PK_SIM_TILE_OPERATOR(>=, comparison, greater_equal)
PK_SIM_TILE_OPERATOR(==, comparison, equal)
PK_SIM_TILE_OPERATOR(!=, comparison, unequal)
#undef PK_SIM_TILE_OPERATOR
#define PK_SIM_TILE_OPERATOR(op, functor)     \
  template <integral_tile A, integral_tile B> \
  requires sim::one_is_tile<A, B>             \
  auto operator op(const A &a, const B &b) noexcept { return sim::binary(sim::functor{}, a, b); }
PK_SIM_TILE_OPERATOR(%, rest)
PK_SIM_TILE_OPERATOR(&, bit_and)
PK_SIM_TILE_OPERATOR(|, bit_or)
PK_SIM_TILE_OPERATOR(^, bit_xor)
#undef PK_SIM_TILE_OPERATOR
#define PK_SIM_TILE_OPERATOR(op, functor)     \
  template <integral_tile A, integral_tile B> \
  requires sim::one_is_tile<A, B>             \
  auto operator op(const A &a, const B &b) noexcept { return sim::map<sim::element<A>>(sim::functor{}, a, b); }
PK_SIM_TILE_OPERATOR(<<, shift_left)
PK_SIM_TILE_OPERATOR(>>, shift_right)
#undef PK_SIM_TILE_OPERATOR
#define PK_SIM_TILE_OPERATOR(op, functor)                             \
  template <tile_like A, tile_like B>                                 \
  requires sim::one_is_tile<A, B>                                     \
  auto operator op(const A &a, const B &b) noexcept {                 \
    return sim::map<bool>(sim::in<bool, bool, sim::functor>{}, a, b); \
  }
PK_SIM_TILE_OPERATOR(&&, both)
PK_SIM_TILE_OPERATOR(||, either)
#undef PK_SIM_TILE_OPERATOR
template <class A>
requires sim::is_tile<A>
auto operator!(const A &a) noexcept { return sim::map<bool>(sim::in<bool, bool, sim::opposite>{}, a); }
template <integral_tile A>
requires sim::is_tile<A>
auto operator~(const A &a) noexcept { return sim::unary(sim::bit_not{}, a); }
template <arithmetic_tile A>
requires sim::is_tile<A>
auto operator-(const A &a) noexcept { return sim::unary(sim::negate{}, a); }
template <arithmetic_tile A>
requires sim::is_tile<A>
auto operator+(const A &a) noexcept { return tile_with_element_t<A, decltype(+sim::computed<sim::element<A>>())>(a); }

// ---- operators of pointers
template <class A, class B>
requires(sim::one_is_tile<A, B> &&pointer_tile<A> &&integral_tile<B>) auto operator+(const A &a, const B &b) noexcept {
  return sim::map<sim::element<A>>([](auto p, auto i) PK_SIM_TILE_LAMBDA { return p + i; }, a, b);
}
template <class A, class B>
requires(sim::one_is_tile<A, B> &&integral_tile<A> &&pointer_tile<B>) auto operator+(const A &a, const B &b) noexcept {
  return b + a;
}
template <class A, class B>
requires(sim::one_is_tile<A, B> &&pointer_tile<A> &&integral_tile<B>) auto operator-(const A &a, const B &b) noexcept {
  return sim::map<sim::element<A>>([](auto p, auto i) PK_SIM_TILE_LAMBDA { return p - i; }, a, b);
}
template <class A, class B>
requires sim::pointers_beside<A, B>
auto operator-(const A &a, const B &b) noexcept {
  return sim::map<ptrdiff_t>([](auto p, auto q) PK_SIM_TILE_LAMBDA { return p - q; }, a, b);
}
#define PK_SIM_TILE_OPERATOR(op)                                                           \
  template <class A, class B>                                                              \
  requires sim::pointers_beside<A, B>                                                      \
  auto operator op(const A &a, const B &b) noexcept {                                      \
    return sim::map<bool>([](auto p, auto q) PK_SIM_TILE_LAMBDA { return p op q; }, a, b); \
  }
PK_SIM_TILE_OPERATOR(==)
PK_SIM_TILE_OPERATOR(!=)
PK_SIM_TILE_OPERATOR(<)
PK_SIM_TILE_OPERATOR(<=)
PK_SIM_TILE_OPERATOR(>)
PK_SIM_TILE_OPERATOR(>=)
#undef PK_SIM_TILE_OPERATOR

// ---- functions
#define PK_SIM_TILE_BINARY(concept_, name, ...)                    \
  template <concept_ A, concept_ B, sim::mode... M>                \
  auto name(const A &a, const B &b, M... modes) noexcept {         \
    return sim::binary(sim::moded(__VA_ARGS__{}, modes...), a, b); \
  }
PK_SIM_TILE_BINARY(arithmetic_tile, add, sim::add)
PK_SIM_TILE_BINARY(arithmetic_tile, sub, sim::subtract)
PK_SIM_TILE_BINARY(arithmetic_tile, mul, sim::multiply)
PK_SIM_TILE_BINARY(arithmetic_tile, div, sim::quotient)
PK_SIM_TILE_BINARY(arithmetic_tile, remainder, sim::rest)
PK_SIM_TILE_BINARY(integral_tile, ceildiv, sim::divide<1, false>)
PK_SIM_TILE_BINARY(integral_tile, floordiv, sim::divide<-1, false>)
PK_SIM_TILE_BINARY(integral_tile, mulhi, sim::high_product)
PK_SIM_TILE_BINARY(arithmetic_tile, max, sim::larger)
PK_SIM_TILE_BINARY(arithmetic_tile, min, sim::smaller)
PK_SIM_TILE_BINARY(arithmetic_tile, pow, sim::pow_of)
PK_SIM_TILE_BINARY(arithmetic_tile, atan2, sim::atan2_of)
#undef PK_SIM_TILE_BINARY
template <arithmetic_tile A, arithmetic_tile B, nan_propagation_mode Mode>
auto max(const A &a, const B &b, nan_propagation_mode_constant<Mode>) noexcept {
  if constexpr (Mode == nan_propagation_mode::suppress_nan)
    return max(a, b);
  else
    return sim::binary(sim::larger_or_nan{}, a, b);
}
template <arithmetic_tile A, arithmetic_tile B, nan_propagation_mode Mode>
auto min(const A &a, const B &b, nan_propagation_mode_constant<Mode>) noexcept {
  if constexpr (Mode == nan_propagation_mode::suppress_nan)
    return min(a, b);
  else
    return sim::binary(sim::smaller_or_nan{}, a, b);
}

#define PK_SIM_TILE_UNARY(name)                                   \
  template <basic_floating_point_tile A, sim::mode... M>          \
  auto name(const A &a, M... modes) noexcept {                    \
    return sim::unary(sim::moded(sim::name##_of{}, modes...), a); \
  }
PK_SIM_TILE_UNARY(exp)
PK_SIM_TILE_UNARY(exp2)
PK_SIM_TILE_UNARY(log)
PK_SIM_TILE_UNARY(log2)
PK_SIM_TILE_UNARY(sqrt)
PK_SIM_TILE_UNARY(rsqrt)
PK_SIM_TILE_UNARY(sin)
PK_SIM_TILE_UNARY(cos)
PK_SIM_TILE_UNARY(tan)
PK_SIM_TILE_UNARY(sinh)
PK_SIM_TILE_UNARY(cosh)
PK_SIM_TILE_UNARY(tanh)
PK_SIM_TILE_UNARY(floor)
PK_SIM_TILE_UNARY(ceil)
#undef PK_SIM_TILE_UNARY
template <arithmetic_tile A>
auto abs(const A &a) noexcept {
  return sim::unary(sim::absolute{}, a);
}
template <arithmetic_tile A, arithmetic_tile B, basic_floating_point_tile C, sim::mode... M>
C fma(const A &a, const B &b, const C &c, M... modes) noexcept {
  using E = sim::element<C>;
  using F = decltype(sim::moded(sim::multiply_add{}, modes...));
  return sim::map<E>(sim::in<sim::computed<E>, E, F>{}, a, b, c);
}
template <floating_point_tile A>
auto isnan(const A &a) noexcept {
  return sim::map<bool>(sim::in<float, bool, sim::not_a_number>{}, a);
}
template <floating_point_tile A>
auto isinf(const A &a) noexcept {
  return sim::map<bool>(sim::in<sim::computed<sim::element<A>>, bool, sim::infinite>{}, a);
}

// One of two tiles, element by element.
template <tile_like C, tile_like T>
T select(const C &condition, const T &yes, const T &no) noexcept {
  using E = sim::element<T>;
  return sim::map<E>([](auto which, E a, E b) PK_SIM_TILE_LAMBDA { return (bool)which ? a : b; }, condition, yes, no);
}

}  // namespace cuda::tiles
