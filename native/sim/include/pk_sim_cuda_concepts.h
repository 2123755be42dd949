// pk_sim_cuda_concepts.h: cuda::std's concepts; constants before C++20, as they are used there.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_types.h"

namespace cuda {
namespace std {

#ifdef __cpp_concepts
#define PK_SIM_CONCEPT concept
#else
#define PK_SIM_CONCEPT inline constexpr bool
#endif
template <class A, class B>
PK_SIM_CONCEPT same_as = is_same_v<A, B> &&is_same_v<B, A>;
template <class A, class B>
PK_SIM_CONCEPT convertible_to = is_convertible_v<A, B>;
template <class A, class B>
PK_SIM_CONCEPT derived_from = is_base_of_v<B, A>;
template <class T>
PK_SIM_CONCEPT integral = is_integral_v<T>;
template <class T>
PK_SIM_CONCEPT signed_integral = is_integral_v<T> &&is_signed_v<T>;
template <class T>
PK_SIM_CONCEPT unsigned_integral = is_integral_v<T> && !is_signed_v<T>;
template <class T>
PK_SIM_CONCEPT floating_point = is_floating_point_v<T>;
template <class T, class... A>
PK_SIM_CONCEPT constructible_from = is_constructible_v<T, A...>;
template <class T>
PK_SIM_CONCEPT default_initializable = is_constructible_v<T>;
template <class T>
PK_SIM_CONCEPT copyable = is_constructible_v<T, const T &>;
template <class F, class... A>
PK_SIM_CONCEPT invocable = is_invocable_v<F, A...>;
#undef PK_SIM_CONCEPT

}  // namespace std
}  // namespace cuda
