// pk_sim_curand_normal.h: uniform, normal and log-normal numbers from cuRAND's generators. Normal ones come in pairs by
// Box and Muller's transform; their bits are those of the host's logarithm and sine.
#pragma once
#pragma GCC system_header

#include "pk_sim_curand_mrg.h"
#include "pk_sim_curand_philox.h"
#include "pk_sim_curand_xorwow.h"

#define PK_SIM_CURAND_UNIFORM(State)                                                         \
  PK_SIM_INLINE float curand_uniform(State *state) { return pk_sim_uniform(curand(state)); } \
  PK_SIM_INLINE float2 pk_sim_normal_pair(State *state) {                                    \
    const unsigned x = curand(state);                                                        \
    return pk_sim_box_muller(x, curand(state));                                              \
  }

PK_SIM_INLINE float pk_sim_uniform(unsigned x) { return x * 2.3283064e-10f + 2.3283064e-10f / 2.0f; }
PK_SIM_INLINE double pk_sim_uniform(unsigned x, unsigned y) {
  return ((unsigned long long)x ^ (unsigned long long)y << 21) * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}
PK_SIM_INLINE float2 pk_sim_box_muller(unsigned x, unsigned y) {
  const float u = pk_sim_uniform(x), v = y * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f * 6.2831855f) / 2;
  const float size = __builtin_sqrtf(-2.0f * __builtin_logf(u));
  return {__builtin_sinf(v) * size, __builtin_cosf(v) * size};
}
PK_SIM_INLINE double2 pk_sim_box_muller(double u, double half_turns) {
  const double size = __builtin_sqrt(-2.0 * __builtin_log(u));
  double sine, cosine;
  sincospi(half_turns, &sine, &cosine);
  return {sine * size, cosine * size};
}
PK_SIM_INLINE double2 pk_sim_box_muller(uint4 bits) {
  return pk_sim_box_muller(pk_sim_uniform(bits.x, bits.y), 2.0 * pk_sim_uniform(bits.z, bits.w));
}
PK_SIM_CURAND_UNIFORM(curandStateXORWOW_t)
PK_SIM_CURAND_UNIFORM(curandStatePhilox4_32_10_t)
#undef PK_SIM_CURAND_UNIFORM

PK_SIM_INLINE double curand_uniform_double(curandStateXORWOW_t *state) {
  const unsigned x = curand(state);
  return pk_sim_uniform(x, curand(state));
}
PK_SIM_INLINE double2 pk_sim_normal_pair_double(curandStateXORWOW_t *state) {
  uint4 bits;
  bits.x = curand(state), bits.y = curand(state), bits.z = curand(state), bits.w = curand(state);
  return pk_sim_box_muller(bits);
}

PK_SIM_INLINE double curand_uniform_double(curandStatePhilox4_32_10_t *state) {
  return curand(state) * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}
PK_SIM_INLINE float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
  const uint4 x = curand4(state);
  return {pk_sim_uniform(x.x), pk_sim_uniform(x.y), pk_sim_uniform(x.z), pk_sim_uniform(x.w)};
}
PK_SIM_INLINE double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state) {
  const uint4 x = curand4(state);
  return {pk_sim_uniform(x.x, x.y), pk_sim_uniform(x.z, x.w)};
}
PK_SIM_INLINE double2 pk_sim_normal_pair_double(curandStatePhilox4_32_10_t *state) {
  return pk_sim_box_muller(curand4(state));
}
PK_SIM_INLINE float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
  const uint4 x = curand4(state);
  const float2 first = pk_sim_box_muller(x.x, x.y), second = pk_sim_box_muller(x.z, x.w);
  return {first.x, first.y, second.x, second.y};
}
PK_SIM_INLINE float4 curand_log_normal4(curandStatePhilox4_32_10_t *state, float mean, float stddev) {
  const float4 x = curand_normal4(state);
  return {__builtin_expf(mean + stddev * x.x), __builtin_expf(mean + stddev * x.y), __builtin_expf(mean + stddev * x.z),
          __builtin_expf(mean + stddev * x.w)};
}

PK_SIM_INLINE double curand_uniform_double(curandStateMRG32k3a_t *state) {
  return curand_MRG32k3a(state) * 2.3283065498378288e-10;
}
PK_SIM_INLINE float curand_uniform(curandStateMRG32k3a_t *state) { return (float)curand_uniform_double(state); }
PK_SIM_INLINE float2 pk_sim_normal_pair(curandStateMRG32k3a_t *state) {
  const float x = curand_uniform(state), y = curand_uniform(state) * 6.2831855f;
  const float size = __builtin_sqrtf(-2.0f * __builtin_logf(x));
  return {__builtin_sinf(y) * size, __builtin_cosf(y) * size};
}
PK_SIM_INLINE double2 pk_sim_normal_pair_double(curandStateMRG32k3a_t *state) {
  const double x = curand_uniform_double(state);
  return pk_sim_box_muller(x, 2.0 * curand_uniform_double(state));
}

#define PK_SIM_CURAND_NORMAL(State, R, suffix, exp)                                                     \
  PK_SIM_INLINE R##2 curand_normal2##suffix(State *state) { return pk_sim_normal_pair##suffix(state); } \
  PK_SIM_INLINE R curand_normal##suffix(State *state) {                                                 \
    state->boxmuller_flag##suffix = !state->boxmuller_flag##suffix;                                     \
    if (!state->boxmuller_flag##suffix) return state->boxmuller_extra##suffix;                          \
    const R##2 pair = pk_sim_normal_pair##suffix(state);                                                \
    state->boxmuller_extra##suffix = pair.y;                                                            \
    return pair.x;                                                                                      \
  }                                                                                                     \
  PK_SIM_INLINE R curand_log_normal##suffix(State *state, R mean, R stddev) {                           \
    return exp(mean + stddev * curand_normal##suffix(state));                                           \
  }                                                                                                     \
  PK_SIM_INLINE R##2 curand_log_normal2##suffix(State *state, R mean, R stddev) {                       \
    const R##2 pair = pk_sim_normal_pair##suffix(state);                                                \
    return {exp(mean + stddev * pair.x), exp(mean + stddev * pair.y)};                                  \
  }
PK_SIM_CURAND_NORMAL(curandStateXORWOW_t, float, , __builtin_expf)
PK_SIM_CURAND_NORMAL(curandStateXORWOW_t, double, _double, __builtin_exp)
PK_SIM_CURAND_NORMAL(curandStatePhilox4_32_10_t, float, , __builtin_expf)
PK_SIM_CURAND_NORMAL(curandStatePhilox4_32_10_t, double, _double, __builtin_exp)
PK_SIM_CURAND_NORMAL(curandStateMRG32k3a_t, float, , __builtin_expf)
PK_SIM_CURAND_NORMAL(curandStateMRG32k3a_t, double, _double, __builtin_exp)
#undef PK_SIM_CURAND_NORMAL
