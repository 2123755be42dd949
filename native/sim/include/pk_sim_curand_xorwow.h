// pk_sim_curand_xorwow.h: Marsaglia's xorwow (2003), cuRAND's default generator, and jumps in its sequence.
#pragma once
#pragma GCC system_header

struct curandStateXORWOW {
  unsigned int d, v[5];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;

// One step of the part that is linear over GF(2).
PK_SIM_INLINE void pk_sim_xorwow_step(unsigned *v) {
  const unsigned t = v[0] ^ v[0] >> 2;
  v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
  v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
}

// A polynomial over GF(2) of degree below 160, bit i the coefficient of x^i.
struct pk_sim_xorwow_polynomial {
  unsigned word[5];
  bool bit(int i) const { return word[i / 32] >> i % 32 & 1u; }
};
// x^160 modulo the characteristic polynomial of the step.
#define PK_SIM_XORWOW_REDUCED \
  { 0x00060001u, 0x08610030u, 0x00062121u, 0x0f3c0035u, 0x00000f0eu }

PK_SIM_NOINLINE pk_sim_xorwow_polynomial pk_sim_xorwow_product(const pk_sim_xorwow_polynomial &a,
                                                               const pk_sim_xorwow_polynomial &b) {
  const unsigned reduced[5] = PK_SIM_XORWOW_REDUCED;
  pk_sim_xorwow_polynomial sum = {};
  for (int i = 159; i >= 0; --i) {
    const unsigned top = -(sum.word[4] >> 31), add = -(unsigned)b.bit(i);
    for (int k = 4; k >= 0; --k) {
      const unsigned carry = k ? sum.word[k - 1] >> 31 : 0u;
      sum.word[k] = (sum.word[k] << 1 | carry) ^ (reduced[k] & top) ^ (a.word[k] & add);
    }
  }
  return sum;
}

// x^(2^k), of which a jump of n steps multiplies those of n's bits. Worked out once by each core.
enum { PK_SIM_XORWOW_POWERS = 67 + 64 };
struct pk_sim_xorwow_powers {
  bool made;
  pk_sim_xorwow_polynomial power[PK_SIM_XORWOW_POWERS];
};
PK_SIM_STATE pk_sim_xorwow_powers pk_sim_xorwow_made;

PK_SIM_NOINLINE void pk_sim_xorwow_jump(unsigned *v, unsigned long long n, int first) {
  pk_sim_xorwow_powers &made = pk_sim_xorwow_made;
  if (n && !made.made) {
    made.power[0] = {{2u, 0, 0, 0, 0}};
    for (int k = 1; k < PK_SIM_XORWOW_POWERS; ++k)
      made.power[k] = pk_sim_xorwow_product(made.power[k - 1], made.power[k - 1]);
    made.made = true;
  }
  for (int k = first; n; n >>= 1, ++k) {
    if (!(n & 1)) continue;
    unsigned sum[5] = {}, now[5] = {v[0], v[1], v[2], v[3], v[4]};
    for (int i = 0; i < 160; ++i) {
      const unsigned taken = -(unsigned)made.power[k].bit(i);
      for (int j = 0; j < 5; ++j) sum[j] ^= now[j] & taken;
      pk_sim_xorwow_step(now);
    }
    for (int j = 0; j < 5; ++j) v[j] = sum[j];
  }
}

PK_SIM_INLINE void skipahead(unsigned long long n, curandStateXORWOW_t *state) {
  unsigned v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  pk_sim_xorwow_jump(v, n, 0);
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
  state->d += 362437u * (unsigned)n;
}
// By n * 2^67 steps, after which d is what it was.
PK_SIM_INLINE void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state) {
  unsigned v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  pk_sim_xorwow_jump(v, n, 67);
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
}

PK_SIM_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStateXORWOW_t *state) {
  const unsigned low = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
  const unsigned high = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
  *state = {6615241u + high + low,
            {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low},
            0,
            0,
            0.0f,
            0.0};
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

PK_SIM_INLINE unsigned int curand(curandStateXORWOW_t *state) {
  pk_sim_xorwow_step(state->v);
  state->d += 362437u;
  return state->v[4] + state->d;
}
