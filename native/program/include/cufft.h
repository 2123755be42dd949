// cufft.h: the plans of cuFFT whose data lie row after row: complex and real transforms of float and double in one to
// three dimensions, in place, too.
#pragma once
#include "cuComplex.h"
#include "pk_program_library.h"

enum cufftResult {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_NOT_SUPPORTED = 16
};
enum cufftType {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
};
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef int cufftHandle;

namespace pk_program {

struct FftPlan {
  int dimensions = 0, extents[3] = {1, 1, 1}, batch = 1;
  cufftType type = CUFFT_C2C;
  cudaStream_t stream = nullptr;
  bool exists = false;
  long long rows() const { return 1ll * extents[0] * extents[1] * extents[2] / extents[dimensions - 1] * batch; }
  long long last() const { return extents[dimensions - 1]; }
  // Numbers of a row of complex values, where only half of them are kept.
  long long half() const { return last() / 2 + 1; }
};
inline std::vector<FftPlan> &fft_plans() {
  static std::vector<FftPlan> plans(1);  // no plan is number 0
  return plans;
}
inline cufftResult make_plan(cufftHandle *handle, const int *extents, int dimensions, cufftType type, int batch) {
  FftPlan plan;
  for (int i = 0; i < dimensions; ++i) {
    if (extents[i] < 1) return CUFFT_INVALID_SIZE;
    plan.extents[i] = extents[i];
  }
  if (batch < 1) return CUFFT_INVALID_SIZE;
  plan.dimensions = dimensions;
  plan.type = type;
  plan.batch = batch;
  plan.exists = true;
  *handle = static_cast<cufftHandle>(fft_plans().size());
  fft_plans().push_back(plan);
  return CUFFT_SUCCESS;
}
inline FftPlan *find_plan(cufftHandle handle) {
  const bool known = handle > 0 && static_cast<size_t>(handle) < fft_plans().size();
  return known && fft_plans()[handle].exists ? &fft_plans()[handle] : nullptr;
}

// In and Out: real or complex. In place, rows of real numbers have room for the complex ones that they become.
template <class In, class Out>
cufftResult transform(cufftHandle handle, cufftType type, const In *from, Out *to, int direction, const pk_place &at) {
  FftPlan *plan = find_plan(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  const bool same = static_cast<const void *>(from) == static_cast<const void *>(to);
  const bool from_real = type == CUFFT_R2C || type == CUFFT_D2Z, to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
  const long long padded = same ? 2 * plan->half() : plan->last();
  const long long in = from_real ? padded : to_real ? plan->half() : plan->last();
  const long long out = to_real ? padded : from_real ? plan->half() : plan->last();
  cudaStreamSynchronize(plan->stream, at);
  Operand<In> source(from, static_cast<size_t>(plan->rows() * in), at);
  Operand<Out> target(to, static_cast<size_t>(plan->rows() * out), at);
  source.fetch();
  if (to_real && same) target.fetch();
  if (source.failed() || target.failed()) return CUFFT_EXEC_FAILED;
  const bool done = library(
      "fft", {source.memory(), target.memory()},
      {type, direction, plan->batch, plan->dimensions, plan->extents[0], plan->extents[1], plan->extents[2], in, out},
      {}, at);
  target.send();
  return done && !target.failed() ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

}  // namespace pk_program

inline cufftResult cufftPlan1d(cufftHandle *plan, int n, cufftType type, int batch) {
  return pk_program::make_plan(plan, &n, 1, type, batch);
}
inline cufftResult cufftPlan2d(cufftHandle *plan, int rows, int columns, cufftType type) {
  const int extents[] = {rows, columns};
  return pk_program::make_plan(plan, extents, 2, type, 1);
}
inline cufftResult cufftPlan3d(cufftHandle *plan, int slices, int rows, int columns, cufftType type) {
  const int extents[] = {slices, rows, columns};
  return pk_program::make_plan(plan, extents, 3, type, 1);
}
// Of data without gaps: with other strides it is refused.
inline cufftResult cufftPlanMany(cufftHandle *plan, int dimensions, int *extents, int *in_embed, int in_step, int,
                                 int *out_embed, int out_step, int, cufftType type, int batch) {
  if (dimensions < 1 || dimensions > 3) return CUFFT_INVALID_VALUE;
  if ((in_embed != nullptr && in_step != 1) || (out_embed != nullptr && out_step != 1)) return CUFFT_NOT_SUPPORTED;
  return pk_program::make_plan(plan, extents, dimensions, type, batch);
}
inline cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  pk_program::FftPlan *plan = pk_program::find_plan(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
inline cufftResult cufftDestroy(cufftHandle handle) {
  pk_program::FftPlan *plan = pk_program::find_plan(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->exists = false;
  return CUFFT_SUCCESS;
}
inline cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction,
                                pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_C2C, from, to, direction, at);
}
inline cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleComplex *to, int direction,
                                pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_Z2Z, from, to, direction, at);
}
inline cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to, pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_R2C, from, to, CUFFT_FORWARD, at);
}
inline cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *from, cufftDoubleComplex *to,
                                pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_D2Z, from, to, CUFFT_FORWARD, at);
}
inline cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to, pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_C2R, from, to, CUFFT_INVERSE, at);
}
inline cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleReal *to,
                                pk_place at = pk_place()) {
  return pk_program::transform(plan, CUFFT_Z2D, from, to, CUFFT_INVERSE, at);
}
