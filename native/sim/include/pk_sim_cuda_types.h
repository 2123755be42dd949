// pk_sim_cuda_types.h: cuda::std's type traits, limits of numbers and utilities, by the compiler's own knowledge.
#pragma once
#pragma GCC system_header

#include "pk_sim_limits.h"

namespace cuda {
namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
using ::std::forward;
using ::std::initializer_list;
using ::std::move;
typedef decltype(nullptr) nullptr_t;

template <class T, T Value>
struct integral_constant {
  typedef T value_type;
  typedef integral_constant type;
  static constexpr T value = Value;
  constexpr operator T() const noexcept { return Value; }
  constexpr T operator()() const noexcept { return Value; }
};
template <bool Value>
using bool_constant = integral_constant<bool, Value>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

// ---- types from types
template <class T>
struct type_identity {
  typedef T type;
};
template <class T>
using type_identity_t = typename type_identity<T>::type;
template <class...>
using void_t = void;
template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> : type_identity<T> {};
template <bool, class A, class B>
struct conditional : type_identity<A> {};
template <class A, class B>
struct conditional<false, A, B> : type_identity<B> {};
#define PK_SIM_TRANSFORM(name, From, ...)  \
  template <class T>                       \
  struct name : type_identity<T> {};       \
  template <class T __VA_ARGS__>           \
  struct name<From> : type_identity<T> {}; \
  template <class T>                       \
  using name##_t = typename name<T>::type;
PK_SIM_TRANSFORM(remove_const, const T)
PK_SIM_TRANSFORM(remove_volatile, volatile T)
PK_SIM_TRANSFORM(remove_extent, T[N], , size_t N)
#undef PK_SIM_TRANSFORM
template <class T>
using remove_cv = remove_const<typename remove_volatile<T>::type>;
template <class T>
using remove_reference = pk_sim_unreferenced<T>;
template <class T>
using remove_cvref = remove_cv<typename remove_reference<T>::type>;
template <class T>
struct pk_sim_unpointed : type_identity<T> {};
template <class T>
struct pk_sim_unpointed<T *> : type_identity<T> {};
template <class T>
struct remove_pointer : pk_sim_unpointed<typename remove_cv<T>::type> {};
template <class T>
using add_const = type_identity<const T>;
template <class T>
using add_pointer = type_identity<typename remove_reference<T>::type *>;
template <class T>
using add_lvalue_reference = type_identity<T &>;
template <class T>
using add_rvalue_reference = type_identity<T &&>;
template <class T>
T &&declval() noexcept;
template <class T>
using underlying_type = type_identity<__underlying_type(T)>;
template <class T>
struct pk_sim_decay {
  template <class U>
  static U by_value(U);
  typedef decltype(by_value(declval<T>())) type;
};
template <class T>
using decay = pk_sim_decay<T>;
template <class... T>
struct common_type;
template <class T>
struct common_type<T> : decay<T> {};
template <class A, class B, class... More>
struct common_type<A, B, More...>
    : common_type<typename decay<decltype(false ? declval<A>() : declval<B>())>::type, More...> {};
template <class F, class... A>
using invoke_result = type_identity<decltype(declval<F>()(declval<A>()...))>;
#define PK_SIM_TYPE(name) \
  template <class T>      \
  using name##_t = typename name<T>::type;
PK_SIM_TYPE(remove_cv)
PK_SIM_TYPE(remove_reference)
PK_SIM_TYPE(remove_cvref)
PK_SIM_TYPE(remove_pointer)
PK_SIM_TYPE(add_const)
PK_SIM_TYPE(add_pointer)
PK_SIM_TYPE(add_lvalue_reference)
PK_SIM_TYPE(add_rvalue_reference)
PK_SIM_TYPE(underlying_type)
PK_SIM_TYPE(decay)
#undef PK_SIM_TYPE
template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;
template <bool Condition, class A, class B>
using conditional_t = typename conditional<Condition, A, B>::type;
template <class... T>
using common_type_t = typename common_type<T...>::type;
template <class F, class... A>
using invoke_result_t = typename invoke_result<F, A...>::type;

// ---- what a type is
#define PK_SIM_IS(name, ...)                    \
  template <class T>                            \
  inline constexpr bool name##_v = __VA_ARGS__; \
  template <class T>                            \
  struct name : bool_constant<name##_v<T>> {};
#define PK_SIM_IS_TWO(name, ...)                \
  template <class A, class B>                   \
  inline constexpr bool name##_v = __VA_ARGS__; \
  template <class A, class B>                   \
  struct name : bool_constant<name##_v<A, B>> {};
template <class A, class B>
inline constexpr bool pk_sim_same_types = false;
template <class A>
inline constexpr bool pk_sim_same_types<A, A> = true;
template <class T, class... Any>
inline constexpr bool pk_sim_one_of = (pk_sim_same_types<T, Any> || ...);
template <class T>
inline constexpr int pk_sim_reference_kind = 0;
template <class T>
inline constexpr int pk_sim_reference_kind<T &> = 1;
template <class T>
inline constexpr int pk_sim_reference_kind<T &&> = 2;
template <class T>
inline constexpr bool pk_sim_is_array = false;
template <class T>
inline constexpr bool pk_sim_is_array<T[]> = true;
template <class T, size_t N>
inline constexpr bool pk_sim_is_array<T[N]> = true;
PK_SIM_IS_TWO(is_same, pk_sim_same_types<A, B>)
PK_SIM_IS(is_void, pk_sim_same_types<remove_cv_t<T>, void>)
PK_SIM_IS(is_const, !pk_sim_same_types<T, remove_const_t<T>>)
PK_SIM_IS(is_volatile, !pk_sim_same_types<T, remove_volatile_t<T>>)
PK_SIM_IS(is_reference, pk_sim_reference_kind<T> != 0)
PK_SIM_IS(is_lvalue_reference, pk_sim_reference_kind<T> == 1)
PK_SIM_IS(is_rvalue_reference, pk_sim_reference_kind<T> == 2)
PK_SIM_IS(is_pointer, !pk_sim_same_types<remove_cv_t<T>, remove_pointer_t<T>>)
PK_SIM_IS(is_array, pk_sim_is_array<T>)
PK_SIM_IS(is_floating_point, pk_sim_one_of<remove_cv_t<T>, float, double, long double>)
PK_SIM_IS(is_integral,
          pk_sim_one_of<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
                        unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long>)
PK_SIM_IS(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
PK_SIM_IS(is_enum, __is_enum(T))
PK_SIM_IS(is_class, __is_class(T))
PK_SIM_IS(is_union, __is_union(T))
PK_SIM_IS(is_empty, __is_empty(T))
PK_SIM_IS(is_trivially_copyable, __is_trivially_copyable(T))
PK_SIM_IS(is_standard_layout, __is_standard_layout(T))
PK_SIM_IS(is_default_constructible, __is_constructible(T))
PK_SIM_IS_TWO(is_base_of, __is_base_of(A, B))
template <class T, bool = is_arithmetic_v<T>>
inline constexpr bool pk_sim_below_zero = false;
template <class T>
inline constexpr bool pk_sim_below_zero<T, true> = T(-1) < T(0);
PK_SIM_IS(is_signed, pk_sim_below_zero<T>)
PK_SIM_IS(is_unsigned, is_arithmetic_v<T> && !pk_sim_below_zero<T>)
template <class A, class B, class = void>
inline constexpr bool pk_sim_converts = is_void_v<A> &&is_void_v<B>;
template <class B>
void pk_sim_takes(B);
template <class A, class B>
inline constexpr bool pk_sim_converts<A, B, void_t<decltype(pk_sim_takes<B>(declval<A>()))>> = true;
PK_SIM_IS_TWO(is_convertible, pk_sim_converts<A, B>)
template <class T, class... A>
inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class T, class... A>
struct is_constructible : bool_constant<is_constructible_v<T, A...>> {};
template <class T>
inline constexpr size_t alignment_of_v = alignof(T);
template <class T>
struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T, unsigned I = 0>
inline constexpr size_t extent_v = 0;
template <class T, size_t N>
inline constexpr size_t extent_v<T[N], 0> = N;
template <class T, size_t N, unsigned I>
inline constexpr size_t extent_v<T[N], I> = extent_v<T, I - 1>;
template <class T, unsigned I>
inline constexpr size_t extent_v<T[], I> = I ? extent_v<T, I - 1> : 0;
template <class T, unsigned I = 0>
struct extent : integral_constant<size_t, extent_v<T, I>> {};
template <class F, class Arguments, class = void>
inline constexpr bool pk_sim_invocable = false;
template <class F, class... A>
inline constexpr bool pk_sim_invocable<F, void(A...), void_t<decltype(declval<F>()(declval<A>()...))>> = true;
template <class F, class... A>
inline constexpr bool is_invocable_v = pk_sim_invocable<F, void(A...)>;
#undef PK_SIM_IS
#undef PK_SIM_IS_TWO
template <class... T>
struct conjunction : bool_constant<(T::value && ...)> {};
template <class... T>
struct disjunction : bool_constant<(T::value || ...)> {};
template <class T>
struct negation : bool_constant<!T::value> {};
template <class... T>
inline constexpr bool conjunction_v = (T::value && ...);
template <class... T>
inline constexpr bool disjunction_v = (T::value || ...);
template <class T>
inline constexpr bool negation_v = !T::value;
constexpr bool is_constant_evaluated() noexcept { return __builtin_is_constant_evaluated(); }

template <class T, int Bytes = sizeof(T)>
struct pk_sim_with_sign;
#define PK_SIM_SIGNS(bytes, T)        \
  template <class U>                  \
  struct pk_sim_with_sign<U, bytes> { \
    typedef signed T plus_or_minus;   \
    typedef unsigned T plus;          \
  };
PK_SIM_SIGNS(1, char)
PK_SIM_SIGNS(2, short)
PK_SIM_SIGNS(4, int)
PK_SIM_SIGNS(8, long)
#undef PK_SIM_SIGNS
template <class T>
using make_signed_t = conditional_t<is_signed_v<T>, T, typename pk_sim_with_sign<T>::plus_or_minus>;
template <class T>
using make_unsigned_t = conditional_t<is_unsigned_v<T>, T, typename pk_sim_with_sign<T>::plus>;
template <class T>
using make_signed = type_identity<make_signed_t<T>>;
template <class T>
using make_unsigned = type_identity<make_unsigned_t<T>>;

// ---- limits
enum float_round_style {
  round_indeterminate = -1,
  round_toward_zero,
  round_to_nearest,
  round_toward_infinity,
  round_toward_neg_infinity
};
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };
template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = is_integral_v<T>, is_signed = is_signed_v<T>, is_integer = is_integral_v<T>;
  static constexpr bool is_exact = is_integer, has_infinity = false, has_quiet_NaN = false;
  static constexpr int radix = 2, digits = 8 * sizeof(T) - is_signed, digits10 = digits * 30103 / 100000;
  static constexpr T min() noexcept { return is_signed ? T(1ull << (8 * sizeof(T) - 1)) : T(0); }
  static constexpr T max() noexcept { return T(~0ull >> (64 - digits)); }
  static constexpr T lowest() noexcept { return min(); }
  static constexpr T epsilon() noexcept { return T(0); }
};
template <>
struct numeric_limits<bool> {
  static constexpr bool is_specialized = true, is_signed = false, is_integer = true, is_exact = true;
  static constexpr int radix = 2, digits = 1, digits10 = 0;
  static constexpr bool min() noexcept { return false; }
  static constexpr bool max() noexcept { return true; }
  static constexpr bool lowest() noexcept { return false; }
};
#define PK_SIM_FLOAT_LIMITS(T, prefix, suffix)                                                           \
  template <>                                                                                            \
  struct numeric_limits<T> {                                                                             \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false; \
    static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = true;                   \
    static constexpr int radix = 2, digits = prefix##_MANT_DIG, digits10 = prefix##_DIG;                 \
    static constexpr T min() noexcept { return prefix##_MIN; }                                           \
    static constexpr T max() noexcept { return prefix##_MAX; }                                           \
    static constexpr T lowest() noexcept { return -prefix##_MAX; }                                       \
    static constexpr T epsilon() noexcept { return prefix##_EPSILON; }                                   \
    static constexpr T infinity() noexcept { return __builtin_huge_val##suffix(); }                      \
    static constexpr T quiet_NaN() noexcept { return __builtin_nan##suffix(""); }                        \
  };
PK_SIM_FLOAT_LIMITS(float, FLT, f)
PK_SIM_FLOAT_LIMITS(double, DBL, )
#undef PK_SIM_FLOAT_LIMITS

// ---- utilities
template <class T>
constexpr void swap(T &a, T &b) noexcept {
  T kept = move(a);
  a = move(b);
  b = move(kept);
}
template <class T, class U = T>
constexpr T exchange(T &place, U &&value) {
  T before = move(place);
  place = forward<U>(value);
  return before;
}
template <class T>
constexpr T *addressof(T &value) noexcept {
  return __builtin_addressof(value);
}
template <class T>
constexpr const T &as_const(T &value) noexcept {
  return value;
}
template <class T, T... I>
struct integer_sequence {
  typedef T value_type;
  static constexpr size_t size() noexcept { return sizeof...(I); }
};
template <size_t... I>
using index_sequence = integer_sequence<size_t, I...>;
#ifdef __clang__
template <class T, T N>
using make_integer_sequence = __make_integer_seq<integer_sequence, T, N>;
#else
template <class T, T N>
using make_integer_sequence = integer_sequence<T, __integer_pack(N)...>;
#endif
template <size_t N>
using make_index_sequence = make_integer_sequence<size_t, N>;
template <class... T>
using index_sequence_for = make_index_sequence<sizeof...(T)>;
template <class T>
struct tuple_size;
// A const one of what has no size has none either: the compiler asks for it before it binds a plain struct's members.
template <class T, size_t = tuple_size<T>::value>
using pk_sim_sized = T;
template <class T>
struct tuple_size<const pk_sim_sized<T>> : tuple_size<T> {};
template <class T>
inline constexpr size_t tuple_size_v = tuple_size<T>::value;
template <size_t I, class T>
struct tuple_element;
template <size_t I, class T>
struct tuple_element<I, const T> : type_identity<const typename tuple_element<I, T>::type> {};
template <size_t I, class T>
using tuple_element_t = typename tuple_element<I, T>::type;
struct in_place_t {};
inline constexpr in_place_t in_place{};

template <class A, class B>
struct pair {
  typedef A first_type;
  typedef B second_type;
  A first{};
  B second{};
  constexpr pair() = default;
  constexpr pair(const A &a, const B &b) : first(a), second(b) {}
  constexpr bool operator==(const pair &other) const { return first == other.first && second == other.second; }
  constexpr bool operator!=(const pair &other) const { return !(*this == other); }
  constexpr bool operator<(const pair &other) const {
    return first < other.first || (!(other.first < first) && second < other.second);
  }
};
template <class A, class B>
pair(A, B) -> pair<A, B>;
template <class A, class B>
constexpr pair<decay_t<A>, decay_t<B>> make_pair(A &&a, B &&b) {
  return {forward<A>(a), forward<B>(b)};
}

}  // namespace std
}  // namespace cuda
