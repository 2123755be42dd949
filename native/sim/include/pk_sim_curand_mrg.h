// pk_sim_curand_mrg.h: L'Ecuyer's MRG32k3a (1999): two recurrences of third order, combined.
#pragma once
#pragma GCC system_header

struct curandStateMRG32k3a {
  unsigned int s1[3];
  unsigned int s2[3];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

#define PK_SIM_MRG_M1 4294967087ull
#define PK_SIM_MRG_M2 4294944443ull

struct pk_sim_mrg_matrix {
  unsigned long long at[3][3];
};
PK_SIM_NOINLINE pk_sim_mrg_matrix pk_sim_mrg_product(const pk_sim_mrg_matrix &a, const pk_sim_mrg_matrix &b,
                                                     unsigned long long modulus) {
  pk_sim_mrg_matrix product;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      unsigned long long sum = 0;
      for (int k = 0; k < 3; ++k) sum = (sum + a.at[i][k] * b.at[k][j] % modulus) % modulus;
      product.at[i][j] = sum;
    }
  }
  return product;
}
// Moves three numbers of one recurrence on by n * 2^squarings steps.
PK_SIM_NOINLINE void pk_sim_mrg_jump(unsigned *s, pk_sim_mrg_matrix step, unsigned long long modulus,
                                     unsigned long long n, int squarings) {
  if (n == 0) return;
  for (int i = 0; i < squarings; ++i) step = pk_sim_mrg_product(step, step, modulus);
  for (; n; n >>= 1) {
    if (n & 1) {
      unsigned long long moved[3] = {};
      for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) moved[i] = (moved[i] + step.at[i][k] * s[k] % modulus) % modulus;
      for (int i = 0; i < 3; ++i) s[i] = (unsigned)moved[i];
    }
    step = pk_sim_mrg_product(step, step, modulus);
  }
}
PK_SIM_INLINE void pk_sim_mrg_forward(curandStateMRG32k3a_t *state, unsigned long long n, int squarings) {
  unsigned first[3] = {state->s1[0], state->s1[1], state->s1[2]};
  unsigned second[3] = {state->s2[0], state->s2[1], state->s2[2]};
  pk_sim_mrg_jump(first, {{{0, 1, 0}, {0, 0, 1}, {PK_SIM_MRG_M1 - 810728, 1403580, 0}}}, PK_SIM_MRG_M1, n, squarings);
  pk_sim_mrg_jump(second, {{{0, 1, 0}, {0, 0, 1}, {PK_SIM_MRG_M2 - 1370589, 0, 527612}}}, PK_SIM_MRG_M2, n, squarings);
  for (int i = 0; i < 3; ++i) state->s1[i] = first[i], state->s2[i] = second[i];
}

PK_SIM_INLINE void skipahead(unsigned long long n, curandStateMRG32k3a_t *state) { pk_sim_mrg_forward(state, n, 0); }
PK_SIM_INLINE void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t *state) {
  pk_sim_mrg_forward(state, n, 76);
}
PK_SIM_INLINE void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t *state) {
  pk_sim_mrg_forward(state, n, 127);
}
PK_SIM_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStateMRG32k3a_t *state) {
  const unsigned long long mixed[2] = {(unsigned)seed ^ 0x55555555u, (unsigned)(seed >> 32) ^ 0xaaaaaaaau};
  *state = {};
  for (int i = 0; i < 3; ++i) {
    state->s1[i] = (unsigned)(seed ? mixed[i % 2] * 12345 % PK_SIM_MRG_M1 : 12345);
    state->s2[i] = (unsigned)(seed ? mixed[(i + 1) % 2] * 12345 % PK_SIM_MRG_M2 : 12345);
  }
  skipahead_subsequence(subsequence, state);
  skipahead(offset, state);
}

// From 1 to m1.
PK_SIM_INLINE double curand_MRG32k3a(curandStateMRG32k3a_t *state) {
  unsigned *a = state->s1, *b = state->s2;
  const unsigned first = (unsigned)((1403580ull * a[1] + 810728ull * (PK_SIM_MRG_M1 - a[0])) % PK_SIM_MRG_M1);
  const unsigned second = (unsigned)((527612ull * b[2] + 1370589ull * (PK_SIM_MRG_M2 - b[0])) % PK_SIM_MRG_M2);
  a[0] = a[1], a[1] = a[2], a[2] = first;
  b[0] = b[1], b[1] = b[2], b[2] = second;
  return first > second ? (double)(first - second) : (double)first - (double)second + (double)PK_SIM_MRG_M1;
}
PK_SIM_INLINE unsigned int curand(curandStateMRG32k3a_t *state) {
  return (unsigned)(curand_MRG32k3a(state) * 1.000000048662);
}
