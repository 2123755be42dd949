// pk_sim_curand_poisson.h: Poisson numbers: by products of uniform ones below a mean of 64 (Knuth), by rejection under
// a logistic approximation of the incomplete gamma function up to 4000, rounded normal ones above.
#pragma once
#pragma GCC system_header

#include "pk_sim_curand_normal.h"

// The approximation's shape for a mean: P(a, x) is about (1 + exp(slope * (a - x) - shift))^-2.
struct pk_sim_poisson_shape {
  float slope, shift;
};
PK_SIM_INLINE pk_sim_poisson_shape pk_sim_poisson_shape_of(float mean) {
  return {1.43248035f / __builtin_sqrtf(mean - 0.124009793f) + 0.000253610749f,
          0.210967349f / __builtin_sqrtf(mean - 1.97381164f) + 0.942017341f};
}
PK_SIM_INLINE float pk_sim_poisson_below(pk_sim_poisson_shape shape, float mean, float x) {
  const float t = 1.0f + __builtin_expf(shape.slope * (mean - x) - shape.shift);
  return 1.0f / (t * t);
}

template <class State>
PK_SIM_INLINE unsigned int pk_sim_poisson_by_products(State *state, float mean) {
  unsigned count = 0;
  float product = __builtin_expf(mean);
  do {
    ++count;
    product *= curand_uniform(state);
  } while (product > 1.0f);
  return count - 1;
}
template <class State>
PK_SIM_INLINE unsigned int pk_sim_poisson_by_rejection(State *state, float mean) {
  const pk_sim_poisson_shape shape = pk_sim_poisson_shape_of(mean);
  const float logarithm = __builtin_logf(mean);
  for (;;) {
    const float y = curand_uniform(state);
    const float at = shape.shift + __builtin_logf(1.0f / __builtin_sqrtf(y) - 1.0f);
    const float x = __builtin_floorf(mean - at / shape.slope);
    const float least = curand_uniform(state);
    const float mass = 1.3f * (pk_sim_poisson_below(shape, mean, x + 1.0f) - pk_sim_poisson_below(shape, mean, x));
    const float wanted = __builtin_expf(x * logarithm - mean - (float)__builtin_lgamma(x + 1.0));
    if (least * mass < wanted && mass >= 1e-20f) return (unsigned)x;
  }
}
template <class State>
PK_SIM_INLINE unsigned int curand_poisson(State *state, double lambda) {
  if (lambda < 64) return pk_sim_poisson_by_products(state, (float)lambda);
  if (lambda <= 4000) return pk_sim_poisson_by_rejection(state, (float)lambda);
  return (unsigned)(__builtin_sqrt(lambda) * curand_normal_double(state) + lambda + 0.5);
}
