// curand.h: generators of the host's interface: uniform and normal numbers of float and double. The numbers are this
// package's: as random as cuRAND's, and others.
#pragma once
#include "pk_program_library.h"

enum curandStatus_t {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_LAUNCH_FAILURE = 201
};
enum curandRngType_t {
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161
};
typedef struct curandGenerator_st {
  unsigned long long seed, drawn;  // how many calls have drawn numbers
  cudaStream_t stream;
} * curandGenerator_t;

inline curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t) {
  *generator = new curandGenerator_st();
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type) {
  return curandCreateGenerator(generator, type);
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  generator->seed = seed;
  generator->drawn = 0;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}

namespace pk_program {
template <class T>
curandStatus_t draw(const char *function, curandGenerator_t generator, T *to, size_t count, double mean,
                    double deviation, const pk_place &at) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  cudaStreamSynchronize(generator->stream, at);
  Operand<T> numbers(to, count, at);
  const bool done = library(function, {numbers.memory()},
                            {sizeof(T), static_cast<long long>(count), static_cast<long long>(generator->seed),
                             static_cast<long long>(generator->drawn++)},
                            {mean, deviation}, at);
  numbers.send();
  return done && !numbers.failed() ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}
}  // namespace pk_program

inline curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *to, size_t count,
                                            pk_place at = pk_place()) {
  return pk_program::draw("uniform", generator, to, count, 0, 1, at);
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *to, size_t count,
                                                  pk_place at = pk_place()) {
  return pk_program::draw("uniform", generator, to, count, 0, 1, at);
}
inline curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *to, size_t count, float mean,
                                           float deviation, pk_place at = pk_place()) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  return pk_program::draw("normal", generator, to, count, mean, deviation, at);
}
inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *to, size_t count, double mean,
                                                 double deviation, pk_place at = pk_place()) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  return pk_program::draw("normal", generator, to, count, mean, deviation, at);
}
