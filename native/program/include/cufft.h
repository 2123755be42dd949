// cufft.h: the plans of cuFFT: complex and real transforms of float and double in one to three dimensions, in place,
// too; of data that lie row after row, or with strides.
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

// Element (i, j, k) of transform b is at b * distance + ((i * extents[1] + j) * extents[2] + k) * step.
struct FftLayout {
  bool given = false;
  long long extents[3] = {1, 1, 1}, step = 1, distance = 0;
};
struct FftPlan {
  int dimensions = 0, extents[3] = {1, 1, 1}, batch = 1;
  cufftType type = CUFFT_C2C;
  cudaStream_t stream = nullptr;
  bool exists = false;
  FftLayout in, out;
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
// The layout of one side, whose rows have `last` numbers, with a plan's extents.
inline FftLayout layout_of(const FftPlan &plan, const FftLayout &asked, long long last) {
  FftLayout result = asked;
  if (asked.given) return result;
  for (int i = 0; i < plan.dimensions; ++i) result.extents[3 - plan.dimensions + i] = plan.extents[i];
  result.extents[2] = last;
  result.distance = result.extents[0] * result.extents[1] * last;
  return result;
}
// Calls visit(number, place) for every element of a layout, in order. How far they go is the result.
template <class Visit>
long long each_place(const FftPlan &plan, const FftLayout &layout, long long last, Visit visit) {
  const long long first = plan.dimensions == 3 ? plan.extents[0] : 1;
  const long long second = plan.dimensions > 1 ? plan.extents[plan.dimensions - 2] : 1;
  long long number = 0, end = 0;
  for (long long b = 0; b < plan.batch; ++b)
    for (long long i = 0; i < first; ++i)
      for (long long j = 0; j < second; ++j)
        for (long long k = 0; k < last; ++k) {
          const long long row = (i * layout.extents[1] + j) * layout.extents[2];
          const long long place = b * layout.distance + (row + k) * layout.step;
          if (place >= end) end = place + 1;
          visit(number++, place);
        }
  return end;
}
// in, out: numbers of a row of each side.
template <class In, class Out>
cufftResult transform_strided(const FftPlan &plan, const In *from, Out *to, int direction, long long in, long long out,
                              const pk_place &at) {
  const FftLayout read = layout_of(plan, plan.in, in), written = layout_of(plan, plan.out, out);
  const auto nothing = [](long long, long long) {};
  Operand<In> source(from, static_cast<size_t>(each_place(plan, read, in, nothing)), at);
  Operand<Out> target(to, static_cast<size_t>(each_place(plan, written, out, nothing)), at);
  source.fetch();
  target.fetch();  // what lies between its elements stays
  if (source.failed() || target.failed()) return CUFFT_EXEC_FAILED;
  std::vector<In> values(static_cast<size_t>(plan.rows() * in));
  std::vector<Out> results(static_cast<size_t>(plan.rows() * out));
  each_place(plan, read, in, [&](long long number, long long place) { values[number] = source[place]; });
  const bool done = library(
      "fft", {values.data(), results.data()},
      {plan.type, direction, plan.batch, plan.dimensions, plan.extents[0], plan.extents[1], plan.extents[2], in, out},
      {}, at);
  each_place(plan, written, out, [&](long long number, long long place) { target[place] = results[number]; });
  target.send();
  return done && !target.failed() ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
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
  if (plan->in.given || plan->out.given)
    return transform_strided(*plan, from, to, direction, to_real ? plan->half() : plan->last(),
                             from_real ? plan->half() : plan->last(), at);
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
inline cufftResult cufftPlanMany(cufftHandle *plan, int dimensions, int *extents, int *in_embed, int in_step,
                                 int in_distance, int *out_embed, int out_step, int out_distance, cufftType type,
                                 int batch) {
  if (dimensions < 1 || dimensions > 3) return CUFFT_INVALID_VALUE;
  if ((in_embed != nullptr && in_step < 1) || (out_embed != nullptr && out_step < 1)) return CUFFT_INVALID_VALUE;
  const cufftResult made = pk_program::make_plan(plan, extents, dimensions, type, batch);
  if (made != CUFFT_SUCCESS) return made;
  const auto give = [dimensions](pk_program::FftLayout &layout, const int *embed, int step, int distance) {
    if (embed == nullptr) return;
    layout.given = true;
    for (int i = 0; i < dimensions; ++i) layout.extents[3 - dimensions + i] = embed[i];
    layout.step = step;
    layout.distance = distance;
  };
  pk_program::FftPlan &known = *pk_program::find_plan(*plan);
  give(known.in, in_embed, in_step, in_distance);
  give(known.out, out_embed, out_step, out_distance);
  return CUFFT_SUCCESS;
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
