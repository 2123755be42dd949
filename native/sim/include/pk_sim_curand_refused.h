// pk_sim_curand_refused.h: what cuRAND has on a device and the simulated one has not: whoever uses one is told why.
#pragma once
#pragma GCC system_header

#define PK_SIM_REFUSED(why) __attribute__((__unavailable__(why)))
#define PK_SIM_QUASI                                                                                                   \
  "Sobol numbers are not there on the simulated device: their direction vectors come from cuRAND's host library. Use " \
  "curandStatePhilox4_32_10_t or curandStateXORWOW_t, or pass numbers of scipy.stats.qmc as an array"
#define PK_SIM_MERSENNE                                                                               \
  "MTGP32 is not there on the simulated device: its parameters come from cuRAND's host library. Use " \
  "curandStatePhilox4_32_10_t or curandStateXORWOW_t"
struct pk_sim_curand_none {};
typedef pk_sim_curand_none curandStateSobol32_t PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateScrambledSobol32_t PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateSobol64_t PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateScrambledSobol64_t PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateSobol32 PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateScrambledSobol32 PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateSobol64 PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateScrambledSobol64 PK_SIM_REFUSED(PK_SIM_QUASI);
typedef pk_sim_curand_none curandStateMtgp32_t PK_SIM_REFUSED(PK_SIM_MERSENNE);
typedef pk_sim_curand_none curandStateMtgp32 PK_SIM_REFUSED(PK_SIM_MERSENNE);
typedef unsigned curandDirectionVectors32_t[32] PK_SIM_REFUSED(PK_SIM_QUASI);
typedef unsigned long long curandDirectionVectors64_t[64] PK_SIM_REFUSED(PK_SIM_QUASI);
typedef void *curandDiscreteDistribution_t PK_SIM_REFUSED(
    "tables of a distribution come from cuRAND's host library; compare curand_uniform() with sums of yours");
template <class State>
PK_SIM_REFUSED("curand_poisson4() is not there on the simulated device; call curand_poisson() four times")
uint4 curand_poisson4(State *, double);
template <class State, class Table>
PK_SIM_REFUSED("tables of a distribution come from cuRAND's host library; compare curand_uniform() with sums of yours")
unsigned curand_discrete(State *, Table);
#undef PK_SIM_MERSENNE
#undef PK_SIM_QUASI
#undef PK_SIM_REFUSED
