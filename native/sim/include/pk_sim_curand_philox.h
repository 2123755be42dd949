// pk_sim_curand_philox.h: Philox4x32-10 of Salmon et al. (2011): ten rounds over a counter and a key.
#pragma once
#pragma GCC system_header

struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned int STATE;  // of output: the next one to give
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

PK_SIM_INLINE uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = 0xd2511f53ull * counter.x, second = 0xcd9e8d57ull * counter.z;
    counter = {(unsigned)(second >> 32) ^ counter.y ^ key.x, (unsigned)second,
               (unsigned)(first >> 32) ^ counter.w ^ key.y, (unsigned)first};
    key = {key.x + 0x9e3779b9u, key.y + 0xbb67ae85u};
  }
  return counter;
}
PK_SIM_INLINE void pk_sim_philox_forward(curandStatePhilox4_32_10_t *state, unsigned long long low,
                                         unsigned long long high) {
  const unsigned long long before = (unsigned long long)state->ctr.y << 32 | state->ctr.x, after = before + low;
  high += ((unsigned long long)state->ctr.w << 32 | state->ctr.z) + (after < before);
  state->ctr = {(unsigned)after, (unsigned)(after >> 32), (unsigned)high, (unsigned)(high >> 32)};
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}

PK_SIM_INLINE void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
  const unsigned next = state->STATE + (unsigned)(n & 3);
  state->STATE = next & 3;
  pk_sim_philox_forward(state, n / 4 + next / 4, 0);
}
// By n * 2^66 numbers.
PK_SIM_INLINE void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
  pk_sim_philox_forward(state, 0, n);
}
PK_SIM_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStatePhilox4_32_10_t *state) {
  *state = {};
  state->key = {(unsigned)seed, (unsigned)(seed >> 32)};
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

PK_SIM_INLINE unsigned int curand(curandStatePhilox4_32_10_t *state) {
  const unsigned at = state->STATE;
  const uint4 given = state->output;
  if (at == 3) pk_sim_philox_forward(state, 1, 0);
  state->STATE = (at + 1) & 3;
  return at == 0 ? given.x : at == 1 ? given.y : at == 2 ? given.z : given.w;
}
PK_SIM_INLINE uint4 curand4(curandStatePhilox4_32_10_t *state) {
  const uint4 a = state->output;
  pk_sim_philox_forward(state, 1, 0);
  const uint4 b = state->output;
  switch (state->STATE) {
    case 1:
      return {a.y, a.z, a.w, b.x};
    case 2:
      return {a.z, a.w, b.x, b.y};
    case 3:
      return {a.w, b.x, b.y, b.z};
    default:
      return a;
  }
}
